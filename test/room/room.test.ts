/** What the room tells and does, over real HTTP: figures equal to gate and ledger, changes and audits in the journal. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  admin,
  deliver,
  eventOf,
  expectProblem,
  newId,
  press,
  putSale,
  record,
  testApi,
  win,
  type TestApi,
} from '../http/api.ts';
import { registerPart } from '../../src/metrics.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { ask, visit, type Visitor } from './visitor.ts';

let stores: Stores;
let api: TestApi;
let visitor: Visitor;
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi(stores.env);
  registerPart(api.wired.registry, 'api'); // as whoever starts a process does
  visitor = await visit(api);
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

type Told = {
  gate: object | null;
  ledger: { sold: number };
  queue: object | null;
  drift: number | null;
  away: string[];
} & Record<string, unknown>;

/** Listens until the figures are like that; what they say, and how many events came until then. */
async function listen(saleId: string, until: (told: Told) => boolean): Promise<Told> {
  const leave = new AbortController();
  const answer = await fetch(`${await api.url()}/ops/events?sale=${saleId}`, {
    ...{ headers: { cookie: visitor.cookie }, signal: AbortSignal.any([leave.signal, AbortSignal.timeout(15_000)]) },
  });
  expect(answer.headers.get('content-type')).toBe('text/event-stream');
  let text = '';
  try {
    for await (const bytes of answer.body ?? []) {
      text += Buffer.from(bytes).toString();
      for (const [, data = ''] of text.matchAll(/^event: figures\nid: \S+\ndata: (.*)\n\n/gm)) {
        const told = JSON.parse(data) as Told;
        if (until(told)) return told;
      }
    }
  } finally {
    leave.abort();
  }
  throw new Error(`the stream ended: ${text}`);
}

test('the stream’s figures are those of gate, ledger and queue', async () => {
  const saleId = await putSale(api, { total: 5 });
  const [paid, pending] = [await win(api, saleId, 'ann', 2), await win(api, saleId, 'bob')];
  await record(api, paid, pending);
  await deliver(api, eventOf(paid));
  const told = await listen(saleId, ({ ledger }) => ledger.sold === 3);
  const figures = (await admin(api, 'GET', `/${saleId}`)).json<Told>();
  expect(told).toMatchObject({
    ...{ gate: { stock: 2, held: 3, forfeited: 0, total: 5 }, ledger: { total: 5, sold: 3 }, drift: 0, away: [] },
    lag: { orders: 2 },
  });
  expect(told.gate).toEqual(figures.gate);
  expect(told.ledger).toEqual(figures.ledger);
  expect(told.queue).toEqual(figures.queue);
  const { sale } = told as unknown as { sale: object };
  expect(figures).toMatchObject(sale);
});

test('what is won and not yet in the ledger is told; so are answers per second, of this moment', async () => {
  const saleId = await putSale(api, { total: 1 });
  const watching = listen(saleId, ({ speed }) => (speed as { answers?: { ok?: number } } | null)?.answers?.ok === 0);
  await watching; // a second reading: from here on there is a speed
  await win(api, saleId, 'ann');
  const told = await listen(
    saleId,
    ({ speed, drift }) => drift === 1 && speed !== null && (speed as { answers: { ok: number } }).answers.ok > 0,
  );
  expect(told).toMatchObject({ drift: 1, ledger: { sold: 0 }, gate: { held: 1 }, lag: null });
});

test('a gate that is not loaded, and an unknown sale', async () => {
  const saleId = await putSale(api);
  await api.redis.del(`{sale:${saleId}}:sale`);
  expect(await listen(saleId, ({ gate }) => gate === null)).toMatchObject({
    gateNotLoaded: true,
    drift: null,
    away: [],
  });
  const headers = { cookie: visitor.cookie };
  expectProblem(await ask(api, { method: 'GET', url: '/ops/events?sale=none', headers }), 'sale_not_found');
});

test('pause, resume, resize, end and close: done as by the admin API, and in the journal by the session', async () => {
  const saleId = await putSale(api, { total: 5 });
  const path = `/ops/sales/${saleId}`;
  expect((await visitor.send('POST', `${path}/pause`)).json()).toMatchObject({ state: 'paused' });
  expectProblem(await press(api, saleId, 'u'), 'paused');
  expect((await visitor.send('POST', `${path}/resume`)).json()).toMatchObject({ state: 'open' });
  const won = await win(api, saleId, 'u', 2);
  expectProblem(await visitor.send('PUT', `${path}/total`, { total: 1 }), 'total_too_low');
  expectProblem(await visitor.send('PUT', `${path}/total`, { total: '9' }), 'invalid_request');
  expect((await visitor.send('PUT', `${path}/total`, { total: 9 })).json()).toMatchObject({ total: 9 });
  expect((await admin(api, 'GET', `/${saleId}`)).json()).toMatchObject({
    gate: { total: 9, stock: 7 },
    ledger: { total: 9 },
  });
  await record(api, won);
  await deliver(api, eventOf(won));
  expect((await visitor.send('POST', `${path}/end`)).json()).toMatchObject({ state: 'ended' });
  expectProblem(await visitor.send('POST', `${path}/resume`), 'ended');
  await expect.poll(async () => (await visitor.send('POST', `${path}/close`)).statusCode).toBe(200);

  const { entries } = (await visitor.get(`/ops/journal?sale=${saleId}`)) as { entries: Record<string, unknown>[] };
  const done = entries.filter(({ outcome }) => outcome === 'done').reverse();
  expect(done.map(({ action, who }) => [action, who])).toEqual([
    ['create', 'token'],
    ...['pause', 'resume', 'resize', 'end', 'close'].map((action) => [action, 'session']),
  ]);
  expect(done[3]).toMatchObject({ before: { total: 5 }, after: { total: 9 } });
  const refused = entries.filter(({ outcome }) => outcome === 'refused').map(({ action }) => action);
  expect(refused.slice(-2)).toEqual(['resume', 'resize']); // newest first
});

test('reservations by how the buyer’s id begins, by status, in pages', async () => {
  const saleId = await putSale(api, { total: 60 });
  const won = [];
  for (let n = 0; n < 30; n += 1) won.push(await win(api, saleId, `u-${n}`));
  const [first, , eleventh] = [won[1], won[2], won[11]];
  await record(api, ...won);
  if (!first || !eleventh) throw new Error('nobody won');
  await deliver(api, eventOf(first));
  const find = async (query: string) =>
    (await visitor.get(`/ops/sales/${saleId}/reservations?${query}`)) as {
      orders: { userId: string; status: string }[];
      next: string | null;
    };
  const names = async (query: string) => (await find(query)).orders.map(({ userId }) => userId).sort();
  expect(await names('buyer=u-29')).toEqual(['u-29']);
  expect(await names('buyer=u-1')).toEqual(
    won
      .map(({ userId }) => userId)
      .filter((id) => id.startsWith('u-1'))
      .sort(),
  );
  expect(await names('status=PAID')).toEqual(['u-1']);
  expect(await names('status=PENDING_PAYMENT&buyer=u-1')).not.toContain('u-1');
  expect(await names('buyer=%25')).toEqual([]);
  const page = await find('');
  const rest = await find(`before=${page.next ?? ''}`);
  expect([page.orders.length, rest.orders.length, rest.next]).toEqual([25, 5, null]);
  expect(new Set([...page.orders, ...rest.orders].map(({ userId }) => userId)).size).toBe(30);
  expect(page.orders[0]).toMatchObject({ userId: 'u-1', status: 'PAID' }); // changed last
  const wrong = { method: 'GET' as const, headers: { cookie: visitor.cookie } };
  for (const query of ['status=GONE', 'before=x', 'more=1']) {
    expectProblem(await ask(api, { ...wrong, url: `/ops/sales/${saleId}/reservations?${query}` }), 'invalid_request');
  }
});

test('an audit: one at a time, its verdict with every check in the journal; what is broken is found', async () => {
  const saleId = await putSale(api);
  const run = async () => {
    expect((await visitor.send('POST', `/ops/sales/${saleId}/audit`)).statusCode).toBe(202);
    expectProblem(await visitor.send('POST', `/ops/sales/${saleId}/audit`), 'already_running');
    type Audit = {
      running: object | null;
      last: { after: { verdict: string; checks: { name: string; broken: number }[] }; who: string };
    };
    let audit: Audit | undefined;
    const isDone = async () => (audit = (await visitor.get(`/ops/sales/${saleId}/audit`)) as Audit).running;
    await expect.poll(isDone, { timeout: 30_000, interval: 200 }).toBeNull();
    return audit?.last;
  };
  const good = await run();
  expect(good).toMatchObject({ who: 'session', after: { verdict: 'holds' } });
  expect(good?.after.checks.length).toBeGreaterThan(15);
  await api.redis.incr(`{sale:${saleId}}:stock`);
  const broken = await run();
  expect(broken).toMatchObject({ after: { verdict: 'broken' } });
  expect(broken?.after.checks.filter((check) => check.broken > 0).map(({ name }) => name)).toContain('gate_conserves');
  expectProblem(await visitor.send('POST', `/ops/sales/none-${newId()}/audit`), 'sale_not_found');
}, 90_000);

test('without a demonstration there is no rush to be started', async () => {
  const start = { buyers: 2000, units: 100, overSeconds: 5 };
  expectProblem(await visitor.send('POST', '/ops/rush', start), 'not_found');
  expect(await visitor.get('/ops/session')).toMatchObject({ rush: false });
});
