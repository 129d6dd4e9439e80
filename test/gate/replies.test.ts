/** Replies that do not answer what was asked: an error, and never a yes. The one place where Redis is not a real one. */
import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { Gate, GateUnavailable } from '../../src/gate/gate.ts';
import { holdText } from './probe.ts';

/** A gate whose Redis answers anything with this. `ASKED` stands for the first argument of what was asked. */
const ASKED = Symbol('the batch id that was asked with');
function gateThatAnswers(reply: unknown): Gate {
  const evalsha = (_sha: string, _count: number, ...rest: string[]) => {
    const put = (value: unknown) => (value === ASKED ? rest[5] : value);
    return Promise.resolve(Array.isArray(reply) ? reply.map(put) : reply);
  };
  return new Gate({ evalsha, on: () => undefined } as unknown as Redis, { timeoutMs: 1000, batch: 10, pending: 10 });
}

const receipt = { userId: 'ann', reservationId: randomUUID() };
const ask = (gate: Gate) => gate.reserve('s', { ...receipt, qty: 1 }, performance.now() + 10_000);
const ok = holdText({ id: receipt.reservationId });
const loaded = (batch: unknown, ...answers: unknown[]) => [batch, 'loaded', 1, 1, '1', '1', ...answers];

test('what is right is taken', async () => {
  expect(await ask(gateThatAnswers(loaded(ASKED, ok)))).toMatchObject({ outcome: 'ok' });
});

test.each<[string, unknown]>([
  ['to another batch', loaded(randomUUID(), ok)],
  ['to another batch that found no gate', [randomUUID(), 'not_loaded']],
  ['with an answer too few', loaded(ASKED)],
  ['with an answer too many', loaded(ASKED, ok, ok)],
  ['with a word that is none', loaded(ASKED, 'maybe')],
  ['with a hold that is none', loaded(ASKED, `${receipt.reservationId}|yes`)],
  ['with the hold of another reservation', loaded(ASKED, holdText())],
  ['with a hold whose quantity is none', loaded(ASKED, ok.replace('|1|', '|one|'))],
  ['with nothing for the buyer', loaded(ASKED, null)],
  ['with another presence', [ASKED, 'live', ok]],
  ['that is empty', []],
  ['that is nothing', null],
  ['of another script', 'begun'],
  ['of a number', 1],
])('a reply to reserve %s', async (_, reply) => {
  await expect(ask(gateThatAnswers(reply))).rejects.toThrow(GateUnavailable);
});

describe('the other scripts', () => {
  const wrong = [null, 'OK', 7, [], ['loaded'], ['loaded', 'yes'], ['loaded', 'released', 'released'], ['live']];
  const calls: Record<string, (gate: Gate) => Promise<unknown>> = {
    release: (gate) => gate.release('s', [receipt]),
    forfeit: (gate) => gate.forfeit('s', [receipt]),
    begin: (gate) => gate.begin('s', 1),
    settle: (gate) => gate.settle('s', { generation: '1', forfeited: 1 }),
  };
  test.each(Object.entries(calls))('%s', async (name, call) => {
    for (const reply of wrong) {
      if (name === 'begin' && Array.isArray(reply)) continue; // tried below, as what it is not
      await expect(call(gateThatAnswers(reply)), JSON.stringify(reply)).rejects.toThrow(GateUnavailable);
    }
    await expect(call(gateThatAnswers([['live']]))).rejects.toThrow(GateUnavailable);
  });

  test('queued: what is no number', async () => {
    await expect(gateThatAnswers(['loaded']).queued('s', receipt)).rejects.toThrow(GateUnavailable);
  });

  test('unqueued: a hold that is none', async () => {
    await expect(gateThatAnswers(['loaded', 'ann', 'hold']).unqueued('s', 1, 1)).rejects.toThrow(GateUnavailable);
  });
});
