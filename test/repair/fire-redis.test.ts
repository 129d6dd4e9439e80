/** Redis in every kind of trouble while buyers press: a named 503 in time, nothing lost, and all is well by itself after. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gateKeys } from '../../src/gate/keys.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { privateRedis, type Server } from '../support/servers.ts';
import { expectAnswered, expectNothingLost, underFire, type Answer, type Fire } from './fire.ts';
import * as h from './house.ts';
import { lineTo, through, type Line } from './proxy.ts';

/** Fewer than press at once, so that the bound is reached while Redis stands still. */
const PENDING = 30;

let server: Server & { url: string };
let line: Line;
let stores: Stores;
let house: h.House;
/** To the server itself, beside the line. */
let admin: Redis;
beforeAll(async () => {
  server = await privateRedis();
  line = await lineTo(server.port);
  stores = await freshStores();
  const redisUrl = through(line, server.url);
  house = await h.openHouse({
    fresh: { ...stores, redisUrl, env: { ...stores.env, REDIS_URL: redisUrl } },
    // A call’s own limit, and nothing slower (the connection’s, 2 s), must be what keeps the deadline.
    env: { GATE_PENDING: String(PENDING), REQUEST_DEADLINE_MS: '600', GATE_TIMEOUT_MS: '500', QUEUE_TIMEOUT_MS: '500' },
  });
  admin = new Redis(server.url);
  admin.on('error', () => undefined); // a server that is killed
});
afterAll(async () => {
  admin.disconnect();
  await h.closeHouse(house);
  await stores.drop();
});

/** Over all troubles: a Redis that answers at once may never be seen with anything waiting. */
let watched = 0;

function expectBounded({ longest }: Pick<Awaited<ReturnType<typeof underFire>>, 'longest'>): void {
  expect(longest.batcher).toBeLessThanOrEqual(PENDING);
  // One batch at a time per sale and kind of call, and those that were given up until the connection is.
  expect(longest.redis).toBeLessThanOrEqual(16);
  watched = Math.max(watched, longest.redis);
}

type Trouble = { what: string; told: Parameters<typeof expectAnswered>[2]; make: (fire: Fire) => Promise<unknown> };
const away = ['gate_unavailable', 'overloaded'] as const;

const troubles: Trouble[] = [
  {
    what: 'frozen, then going on',
    told: [...away],
    make: async (fire) => {
      server.kill('SIGSTOP');
      await fire.told('gate_unavailable');
      await fire.more(PENDING);
      server.kill('SIGCONT');
    },
  },
  {
    what: 'its replies are lost, then the connections',
    told: [...away],
    make: async (fire) => {
      line.mode = 'mute';
      await fire.told('gate_unavailable');
      await fire.more(PENDING);
      line.mode = 'pass';
      line.cut();
    },
  },
  {
    what: 'connections cut again and again',
    told: [...away],
    make: async (fire) => {
      for (let n = 0; n < 5; n += 1) {
        line.cut();
        await fire.more(PENDING);
      }
    },
  },
  {
    what: 'demoted to a replica, then promoted',
    told: [...away],
    make: async (fire) => {
      await admin.replicaof('127.0.0.1', 1);
      await fire.told('gate_unavailable');
      await fire.more(PENDING);
      await admin.replicaof('NO', 'ONE');
    },
  },
  {
    what: 'out of memory, then with enough of it',
    told: [...away],
    make: async (fire) => {
      await admin.config('SET', 'maxmemory', '1');
      await fire.told('gate_unavailable');
      await fire.more(PENDING);
      await admin.config('SET', 'maxmemory', '0');
    },
  },
  {
    what: 'busy in a script that does not end, then rid of it',
    told: [...away],
    make: async (fire) => {
      await admin.config('SET', 'busy-reply-threshold', '50');
      const other = new Redis(server.url);
      const ended = other.eval('while true do end', 0).catch((error: unknown) => String(error));
      await fire.told('gate_unavailable');
      await fire.more(PENDING);
      await admin.script('KILL');
      expect(await ended).toMatch(/killed/i);
      other.disconnect();
    },
  },
  {
    what: 'killed, then started again with what it had',
    told: [...away],
    make: async (fire) => {
      server.kill('SIGKILL');
      await fire.told('gate_unavailable');
      await fire.more(PENDING);
      await server.restart();
    },
  },
  {
    what: 'its scripts flushed again and again: nobody notices',
    told: ['overloaded'],
    make: async (fire) => {
      for (let n = 0; n < 20; n += 1) {
        await admin.script('FLUSH');
        await fire.more(5);
      }
    },
  },
];

test.each(troubles)('$what', { timeout: 60_000 }, async ({ told, make }) => {
  const saleId = await h.newSale(house, { total: 100_000 });
  const fired = await underFire(house, saleId, async (fire) => {
    await fire.told('ok');
    await make(fire);
    await fire.told('ok'); // the same process, by itself
  });
  expectAnswered(house, fired.answers, told);
  expectBounded(fired);
  await expectNothingLost(house, saleId, fired.answers);
});

test('what waits for Redis was really looked at', () => {
  expect(watched).toBeGreaterThan(0);
});

test(
  'a key of one sale written over: 503 there and nowhere else; removed, the gate is rebuilt',
  { timeout: 60_000 },
  async () => {
    const saleId = await h.newSale(house, { total: 100_000 });
    const other = await h.newSale(house, { total: 100_000 });
    let elsewhere: Answer[] = [];
    const { answers } = await underFire(house, saleId, async (fire) => {
      await fire.told('ok');
      const beside = await underFire(house, other, async (there) => {
        await admin.set(gateKeys(saleId)[2], 'no hash');
        await fire.told('gate_unavailable');
        await there.more(20);
      });
      elsewhere = beside.answers;
      await admin.del(...gateKeys(saleId));
      await fire.told('gate_not_loaded');
      await h.drain(house);
      await h.keep(house);
      await fire.told('ok');
    });
    expectAnswered(house, answers, ['gate_unavailable', 'gate_not_loaded', 'overloaded']);
    expectAnswered(house, elsewhere, ['overloaded']);
    await expectNothingLost(house, saleId, answers);
  },
);
