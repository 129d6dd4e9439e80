import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { atEndOfTurn } from '../../src/http/turn.ts';

test('what comes in one turn is answered at its end, in order; what comes meanwhile in the next', async () => {
  const answered: string[] = [];
  const answer = atEndOfTurn((item: string) => {
    answered.push(item);
    if (item === 'b') answer('after b');
  });
  for (const item of ['a', 'b', 'c']) answer(item);
  await Promise.resolve();
  expect(answered).toEqual([]);
  await nextTurn();
  expect(answered).toEqual(['a', 'b', 'c']);
  await nextTurn();
  expect(answered).toEqual(['a', 'b', 'c', 'after b']);
});
