/** Slots of a Redis Cluster that move while buyers press: nobody sees it but by a named 503, and no unit is lost. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { gateKeys } from '../../src/gate/keys.ts';
import { expectProblem, gateState, press, putSale, testApi, win, type TestApi } from '../http/api.ts';
import { moveSlot, privateCluster, type RedisCluster } from '../support/redis-cluster.ts';
import { freshStores, type Stores } from '../support/stores.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 90_000 });

/** So that nothing is looked at again by itself. */
const LATCH_MS = 60_000;

let stores: Stores;
let cluster: RedisCluster;
const apis: TestApi[] = [];
beforeAll(async () => {
  [stores, cluster] = await Promise.all([freshStores(), privateCluster()]);
});
afterAll(async () => {
  for (const api of apis) await api.close();
  cluster.close();
  await stores.drop();
});

async function openApi(env: Record<string, string> = {}): Promise<TestApi> {
  const api = await testApi({ ...stores.env, ...cluster.env, ...env }, cluster.connect);
  apis.push(api);
  await api.wired.connected();
  return api;
}

/** Replies of that kind that the nodes have given so far. */
async function errors(kind: string): Promise<number> {
  const stats = await Promise.all(cluster.masters.map(({ client }) => client.info('errorstats')));
  return stats.reduce(
    (sum, text) => sum + Number(new RegExp(`errorstat_${kind}:count=(\\d+)`).exec(text)?.[1] ?? 0),
    0,
  );
}

test('back and forth between the nodes under load: no MOVED reaches a buyer, none is sold twice, none is lost', async () => {
  const api = await openApi();
  const TOTAL = 400;
  const saleId = await putSale(api, { total: TOTAL });
  const slot = await cluster.slotOf(saleId);
  let moving = true;
  const codes = new Set<string>();
  const buyer = async (userId: string) => {
    for (;;) {
      const answer = await press(api, saleId, userId);
      expect(answer.body).not.toMatch(/MOVED|ASK|TRYAGAIN|Cluster/i);
      if (answer.statusCode === 202 || answer.statusCode === 200) return answer.json<{ reservationId: string }>();
      const { code } = answer.json<{ code: 'sold_out' | 'gate_unavailable' }>();
      codes.add(code);
      expectProblem(answer, code);
      if (code === 'sold_out') return undefined;
      await sleep(20);
    }
  };
  const move = async () => {
    for (let n = 0; n < 9; n += 1) await moveSlot(cluster, slot, cluster.masters[n % 3] as never, 15);
    moving = false;
  };
  const crowd = async (lane: number) => {
    const won: (string | undefined)[] = [];
    for (let n = 0; moving || n < 60; n += 1) won.push((await buyer(`b-${lane}-${n}`))?.reservationId);
    return won;
  };
  const [lanes] = await Promise.all([Promise.all(Array.from({ length: 10 }, (_, n) => crowd(n))), move()]);

  const told = lanes.flat().filter((id) => id !== undefined);
  expect(new Set(told).size).toBe(told.length);
  expect(told.length).toBe(TOTAL);
  expect(await gateState(api, saleId)).toMatchObject({ stock: '0', held: String(TOTAL), buyers: TOTAL });
  const holds = await api.redis.hvals(`{sale:${saleId}}:holds`);
  expect(holds.map((hold) => hold.slice(0, 36)).sort()).toEqual(told.sort());
  expect([...codes].filter((code) => !['sold_out', 'gate_unavailable'].includes(code))).toEqual([]);
  // It has been about something: nodes have sent the client on.
  expect(await errors('MOVED')).toBeGreaterThan(0);
  expect((await errors('ASK')) + (await errors('TRYAGAIN'))).toBeGreaterThan(0);
});

test('a moved slot is another server, for the latch: who holds there is asked anew, and it latches anew', async () => {
  const api = await openApi({ LATCH_MS: String(LATCH_MS) });
  const saleId = await putSale(api, { total: 1 });
  const [slot, from] = [await cluster.slotOf(saleId), await cluster.ownerOf(saleId)];
  await win(api, saleId, 'holder');
  const latched = async () => {
    await expect
      .poll(async () => {
        expectProblem(await press(api, saleId, 'late'), 'sold_out');
        return api.wired.stores.gate.refuses(saleId, 'late', 1);
      })
      .toBe(true);
  };
  await latched();
  await expect.poll(() => api.redis.zcard(`{sale:${saleId}}:unqueued`), { timeout: 15_000 }).toBe(0);
  const to = cluster.masters.find((node) => node !== from);
  if (!to) throw new Error('there are three');
  await moveSlot(cluster, slot, to);

  // As on a replica that took over before it had the last writes, and was written to since: the same version, another
  // holder. The one whom this process knows is asked about at the gate, which tells it that the slot has moved.
  const [, buyers, holds] = gateKeys(saleId);
  const hold = (await to.client.hget(holds, 'holder')) ?? '';
  await to.client
    .multi()
    .hdel(holds, 'holder')
    .hset(holds, 'other', hold)
    .srem(buyers, 'holder')
    .sadd(buyers, 'other')
    .exec();
  expectProblem(await press(api, saleId, 'other'), 'sold_out'); // not known yet
  expectProblem(await press(api, saleId, 'holder'), 'sold_out');
  await expect.poll(async () => (await press(api, saleId, 'other')).statusCode, { timeout: 10_000 }).toBe(200);
  await latched();
});
