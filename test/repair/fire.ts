/**
 * Buyers who press without a pause, while something is done to a store: each answer with its time, and how long the
 * queues inside the clients became.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, vi } from 'vitest';
import { Batcher } from '../../src/batcher.ts';
import { problems } from '../../src/http/problem.ts';
import * as h from './house.ts';

export type Answer = { userId: string; status: number; word: string | undefined; id: string | undefined; ms: number };

export type Fire = {
  answers: Answer[];
  /** Waits for so many more answers. */
  more(count: number): Promise<void>;
  /** Waits until somebody was told this, from here on. */
  told(...words: string[]): Promise<void>;
};

/** Buyers at once. Each presses again until they hold, as buyers do, and then the next one comes. */
const AT_ONCE = 40;
/** For a machine that is busy: how much later than the deadline an answer may be measured. */
export const SLACK_MS = 1000;

/**
 * @returns what everybody was told, once `during` is over and the last one was answered; and the longest that any queue
 *   inside the product's clients was meanwhile: commands without an answer, items that wait
 */
export async function underFire(
  house: Pick<h.House, 'app' | 'config'>,
  saleId: string,
  during: (fire: Fire) => Promise<unknown>,
): Promise<{ answers: Answer[]; longest: Longest }> {
  const answers: Answer[] = [];
  const queues = watchQueues();
  let over = false;
  let buyers = 0;
  const pressing = Array.from({ length: AT_ONCE }, async () => {
    let userId = '';
    while (!over) {
      if (userId === '') userId = `buyer-${(buyers += 1)}`;
      const began = performance.now();
      const { status, word, id } = await h.press(house, saleId, userId);
      answers.push({ userId, status, word, id, ms: performance.now() - began });
      if (status < 300) userId = '';
      await sleep(20);
    }
  });
  const more = (count: number) => {
    const wanted = answers.length + count;
    return h.until(() => answers.length >= wanted);
  };
  const told = (...words: string[]) => {
    const from = answers.length;
    return h.until(() => answers.slice(from).some(({ word }) => words.includes(word ?? '')));
  };
  try {
    await during({ answers, more, told });
  } finally {
    over = true;
    await Promise.all(pressing);
    queues.stop();
  }
  return { answers, longest: queues.longest };
}

/** Every answer came in time, and what is no answer of the sale’s is a 503 with a name: one of these. */
export function expectAnswered(
  house: Pick<h.House, 'config'>,
  answers: Answer[],
  named: (keyof typeof problems)[],
): void {
  const late = answers.filter(({ ms }) => ms > house.config.REQUEST_DEADLINE_MS + SLACK_MS);
  expect(late, 'answered within its deadline').toEqual([]);
  const other = answers.filter(
    ({ status, word }) => !(status === 202 || status === 200) && !named.includes(word as never),
  );
  expect(other, `a 503 is one of ${named.join(', ')}`).toEqual([]);
  for (const code of named) expect(problems[code][0]).toBe(503);
}

/** Everybody who was told so has an order, nobody was refused, and the books agree. */
export async function expectNothingLost(house: h.House, saleId: string, answers: Answer[]): Promise<void> {
  await h.resendMarked(house, saleId);
  await h.keep(house);
  const ids = answers.flatMap(({ status, id }) => (status < 300 && id !== undefined ? [id] : []));
  const { rows } = await house.db.query<{ id: string }>(
    `select reservation_id as id from sale_orders where reservation_id = any($1::uuid[]) and status = 'PENDING_PAYMENT'`,
    [ids],
  );
  expect(new Set(rows.map(({ id }) => id))).toEqual(new Set(ids));
  expect(await h.rejected(house), 'in a run in which the gate loses nothing no winner is refused').toEqual([]);
  await h.expectSettled(house);
}

type Longest = { redis: number; batcher: number };

function watchQueues() {
  const longest: Longest = { redis: 0, batcher: 0 };
  const command = vi.spyOn(Redis.prototype, 'sendCommand');
  const add = vi.spyOn(Batcher.prototype, 'add');
  const look = () => {
    for (const redis of new Set(command.mock.contexts as unknown as Client[])) {
      if (redis.options.enableOfflineQueue !== false) continue; // the test's own
      longest.redis = Math.max(longest.redis, redis.commandQueue.length + redis.offlineQueue.length);
    }
    for (const batcher of new Set(add.mock.contexts)) {
      longest.batcher = Math.max(longest.batcher, (batcher as { size: number }).size);
    }
    command.mockClear();
    add.mockClear();
  };
  const timer = setInterval(look, 10);
  return {
    longest,
    stop: () => {
      clearInterval(timer);
      command.mockRestore();
      add.mockRestore();
    },
  };
}

/** ioredis' client with its inside. */
type Client = Pick<Redis, 'options'> & Record<'commandQueue' | 'offlineQueue', { length: number }>;
