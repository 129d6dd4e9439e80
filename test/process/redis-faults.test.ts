/** Redis frozen, killed, or emptied in mid-sale: a named 503 in time, never a yes and never "sold out"; then rebuilt. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { privateRedis } from '../support/servers.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { admin, ask, deliver, eventOf, expectProblem, gateState, press, putSale, record } from '../http/api.ts';
import { reservationUrl, shortLimits, testApi, win, type TestApi } from '../http/api.ts';
import { expectReason, flashgate } from './program.ts';

vi.setConfig({ testTimeout: 60_000 }); // it waits for several time limits

let stores: Stores;
let redis: Awaited<ReturnType<typeof privateRedis>>;
let api: TestApi;
let env: Record<string, string>;
beforeAll(async () => {
  [stores, redis] = await Promise.all([freshStores(), privateRedis()]);
  env = { ...stores.env, REDIS_URL: redis.url, LOG_LEVEL: 'error' };
  api = await testApi({ ...env, ...shortLimits });
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

/** Presses until the gate answers again: the connection may still be coming back. */
const backAgain = (saleId: string, userId: string) =>
  expect.poll(async () => (await press(api, saleId, userId)).statusCode, { timeout: 10_000 }).toBeLessThan(500);

/** Many presses while the gate is away: all the same refusal, all in time. */
async function allUnavailable(saleId: string): Promise<void> {
  const started = performance.now();
  const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => press(api, saleId, `away-${n}`)));
  expect(performance.now() - started).toBeLessThan(api.config.REQUEST_DEADLINE_MS * 2.5);
  for (const answer of answers) expectProblem(answer, 'gate_unavailable');
}

test('frozen: 503 gate_unavailable in time; what was asked meanwhile costs at most what its buyers then hold', async () => {
  const saleId = await putSale(api, { total: 1000 });
  const holder = await win(api, saleId, 'holder');
  redis.kill('SIGSTOP');
  try {
    await allUnavailable(saleId);
    expectProblem(await press(api, saleId, 'holder'), 'gate_unavailable');
    const figures = await admin(api, 'GET', `/${saleId}`);
    expect(figures.json()).toMatchObject({ gate: null, away: [expect.stringMatching(/^gate: /) as string] });
    const ready = await ask(api, '/readyz');
    expect(ready.statusCode).toBe(200); // a shared dependency that is away must not empty the balancer
    expect(ready.json()).toMatchObject({ dependencies: { redis: { ok: false }, postgres: { ok: true } } });
  } finally {
    redis.kill('SIGCONT');
  }
  await backAgain(saleId, 'holder');
  expect(await win(api, saleId, 'holder')).toEqual({ ...holder, outcome: 'dup' });
  // A press that Redis read before it froze was decided when it woke: its buyer finds the hold by pressing again.
  const { stock, held, buyers } = await gateState(api, saleId);
  expect(Number(stock) + Number(held)).toBe(1000);
  expect(buyers).toBe(Number(held));
  const holders = await api.redis.smembers(`{sale:${saleId}}:buyers`);
  for (const userId of holders) expect((await win(api, saleId, userId)).outcome).toBe('dup');
});

test('killed: 503 gate_unavailable; started again, it has what it had', async () => {
  const saleId = await putSale(api, { total: 10 });
  const holder = await win(api, saleId, 'holder', 2);
  await record(api, holder);
  redis.kill('SIGKILL');
  await redis.exited;
  await allUnavailable(saleId);
  expect((await ask(api, `/sales/${saleId}`)).statusCode).toBeLessThanOrEqual(503);
  await redis.restart();
  await backAgain(saleId, 'holder');
  expect(await win(api, saleId, 'holder')).toEqual({ ...holder, outcome: 'dup' });
  await expect
    .poll(() => gateState(api, saleId), { timeout: 15_000 })
    .toMatchObject({ stock: '8', held: '2', buyers: 1 });
});

test('emptied in mid-sale: 503 gate_not_loaded, then rebuilt exactly; the audit holds', async () => {
  const saleId = await putSale(api, { total: 5, maxPerReservation: 2 });
  const [paid, unpaid, gone] = await Promise.all(
    ['paid', 'unpaid', 'gone'].map((userId, n) => win(api, saleId, userId, n === 0 ? 2 : 1)),
  );
  if (!paid || !unpaid || !gone) throw new Error('three presses, three answers');
  await record(api, paid, unpaid, gone);
  await deliver(api, eventOf(paid));
  expect((await ask(api, reservationUrl(gone), { method: 'DELETE' })).statusCode).toBe(204);
  await expect.poll(() => api.redis.zcard(`{sale:${saleId}}:unqueued`), { timeout: 15_000 }).toBe(0);
  const holds = await api.redis.hgetall(`{sale:${saleId}}:holds`);
  const before = await gateState(api, saleId);
  expect(before).toMatchObject({ stock: '2', held: '3', buyers: 2 });

  await api.redis.flushall();
  for (const userId of ['paid', 'gone', 'somebody']) {
    expectProblem(await press(api, saleId, userId), 'gate_not_loaded');
  }
  await expect.poll(async () => (await ask(api, `/sales/${saleId}`)).statusCode, { timeout: 15_000 }).toBe(503);
  const lost = await flashgate(['audit', '--sale', saleId], env);
  expect([lost.code, lost.stdout]).toEqual([3, expect.stringMatching(/not loaded/)]);

  const rebuilt = await flashgate(['rebuild', '--sale', saleId], env);
  expect(rebuilt).toMatchObject({ code: 0, stdout: `sale ${saleId}: the gate is open\n` });
  expect(await gateState(api, saleId)).toMatchObject({ ...before, version: '0' });
  expect(await api.redis.hgetall(`{sale:${saleId}}:holds`)).toEqual(holds);
  const audited = await flashgate(['audit', '--sale', saleId], env);
  expect(audited.code, audited.stdout).toBe(0);

  expect(await win(api, saleId, 'paid')).toEqual({ ...paid, outcome: 'dup' });
  expect((await win(api, saleId, 'gone')).outcome).toBe('ok');
  const again = await flashgate(['rebuild', '--sale', saleId], env);
  expect(again).toMatchObject({ code: 0, stdout: `sale ${saleId} has a live gate: nothing was done\n` });
});

test('rebuild of a sale that does not exist: exit 1, the reason, at once, and no key is left behind', async () => {
  expectReason(await flashgate(['rebuild', '--sale', 'no-such-sale'], env), 'there is no sale no-such-sale');
  expect(await api.redis.keys('{sale:no-such-sale}*')).toEqual([]);
});

test('a gate that lost one of its keys is rebuilt, too', async () => {
  const saleId = await putSale(api, { total: 5 });
  const won = await win(api, saleId, 'u');
  await record(api, won);
  await expect.poll(() => api.redis.zcard(`{sale:${saleId}}:unqueued`), { timeout: 15_000 }).toBe(0);
  await api.redis.del(`{sale:${saleId}}:holds`);
  expectProblem(await press(api, saleId, 'u'), 'gate_not_loaded');
  const rebuilt = await flashgate(['rebuild', '--sale', saleId], env);
  expect(rebuilt).toMatchObject({ code: 0, stdout: `sale ${saleId}: the gate is open\n` });
  expect(await win(api, saleId, 'u')).toEqual({ ...won, outcome: 'dup' });
});
