/** The admin journal: each change in it with who, when, from what to what; what was refused too; read by cursor. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { transaction } from '../../src/ledger/db.ts';
import { writeJournal } from '../../src/ledger/journal.ts';
import { resizeSale } from '../../src/operations/sales.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { admin, asAdmin, deliver, eventOf, expectProblem, newId, putSale, record, saleSettings } from './api.ts';
import { testApi, win, type TestApi } from './api.ts';

let stores: Stores;
let api: TestApi;
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi(stores.env);
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

type Entry = Record<string, unknown> & { before?: object; after?: object };
type Page = { entries: Entry[]; next: string | null };

async function read(query = ''): Promise<Page> {
  const answer = await api.app.inject({ method: 'GET', url: `/admin/journal${query}`, headers: asAdmin });
  expect(answer.statusCode, answer.body).toBe(200);
  return answer.json();
}

/** An entry is shown once every earlier transaction of the server is over, those of other tests too. */
async function entriesOf(saleId: string, count: number): Promise<Entry[]> {
  let entries: Entry[] = [];
  await expect
    .poll(async () => (entries = (await read(`?saleId=${saleId}`)).entries).length, { timeout: 15_000 })
    .toBe(count);
  return entries;
}

test('the whole life of a sale, with who asked and what it was before', async () => {
  const saleId = newId();
  const change = (changes: object, id: string) =>
    api.app.inject({
      method: 'PUT',
      url: `/admin/sales/${saleId}`,
      headers: { ...asAdmin, 'x-request-id': id },
      payload: { ...saleSettings(), ...changes },
    });
  await change({}, 'first');
  await change({ total: 20 }, 'second');
  for (const action of ['pause', 'resume', 'end']) await admin(api, 'POST', `/${saleId}/${action}`);
  const entries = await entriesOf(saleId, 5);
  expect(entries.map(({ action, who, outcome }) => [action, who, outcome])).toEqual([
    ...['create', 'change', 'pause', 'resume', 'end'].map((action) => [action, 'token', 'done']),
  ]);
  const [created, changed, paused] = entries;
  expect(created).toMatchObject({ requestId: 'first', saleId, after: { total: 10 } });
  expect(created?.before).toBeUndefined();
  expect(changed).toMatchObject({ requestId: 'second', before: { total: 10 }, after: { total: 20, settings: 2 } });
  expect(paused).toMatchObject({ before: { state: 'open' }, after: { state: 'paused' } });
  expect(Date.now() - Date.parse(String(created?.['at']))).toBeLessThan(60_000);
});

test('closing, and a refund', async () => {
  const saleId = await putSale(api);
  const won = await win(api, saleId, 'u');
  await record(api, won);
  await deliver(api, eventOf(won));
  await admin(api, 'POST', `/${saleId}/end`);
  await expect.poll(async () => (await admin(api, 'POST', `/${saleId}/close`)).statusCode).toBe(200);
  await admin(api, 'POST', `/${saleId}/close`); // again: nothing changes
  const refund = { returnUnits: false };
  await admin(api, 'POST', `/${saleId}/orders/${won.reservationId}/refund`, refund);
  await admin(api, 'POST', `/${saleId}/orders/${won.reservationId}/refund`, refund);
  // Closing may be refused for a moment, until the gate's mark is off.
  await expect.poll(async () => (await read(`?saleId=${saleId}`)).entries.at(-1)?.['action']).toBe('refund');
  const done = (await read(`?saleId=${saleId}`)).entries.filter(({ outcome }) => outcome === 'done');
  expect(done.map(({ action }) => action)).toEqual(['create', 'end', 'close', 'refund']);
  expect(done.at(-1)).toMatchObject({
    before: { reservationId: won.reservationId, status: 'PAID' },
    after: { reservationId: won.reservationId, status: 'REFUNDED', unitsReturned: false },
  });
});

test('what was refused is told with its reason, and changed nothing', async () => {
  const saleId = await putSale(api, { total: 5 });
  await record(api, await win(api, saleId, 'u', 3));
  expectProblem(await admin(api, 'PUT', `/${saleId}`, saleSettings({ total: 2 })), 'total_too_low');
  expectProblem(await admin(api, 'POST', `/${saleId}/close`), 'not_settled');
  expectProblem(await admin(api, 'POST', `/nowhere-${saleId}/pause`), 'sale_not_found');
  const entries = await entriesOf(saleId, 3);
  expect(entries.map(({ action, outcome }) => [action, outcome])).toEqual([
    ...[
      ['create', 'done'],
      ['change', 'refused'],
      ['close', 'refused'],
    ],
  ]);
  expect(entries[1]?.['reason']).toMatch(/^total_too_low: 3 units/);
  expect(await entriesOf(`nowhere-${saleId}`, 1)).toMatchObject([{ action: 'pause', outcome: 'refused' }]);
});

test('a gate that is lost after the ledger has the change: done, and failed; both are true', async () => {
  const saleId = await putSale(api);
  await api.redis.flushdb();
  expectProblem(await admin(api, 'POST', `/${saleId}/pause`), 'gate_not_loaded');
  const entries = await entriesOf(saleId, 3);
  const [, done, failed] = entries;
  expect(done).toMatchObject({ action: 'pause', outcome: 'done' });
  expect(failed).toMatchObject({ outcome: 'failed', requestId: done?.['requestId'] });
});

test('a change and its entry are one: without the one there is not the other', async () => {
  const saleId = await putSale(api);
  await api.db.query(`alter table admin_journal add constraint nothing_more check (sale_id <> '${saleId}') not valid`);
  try {
    expect((await admin(api, 'POST', `/${saleId}/pause`)).statusCode).toBe(500);
    expect((await admin(api, 'GET', `/${saleId}`)).json()).toMatchObject({ state: 'open', settings: 1 });
  } finally {
    await api.db.query('alter table admin_journal drop constraint nothing_more');
  }
});

describe('the shop’s endpoints of webhooks', () => {
  const call = (method: 'PUT' | 'POST' | 'DELETE', path: string, payload?: object) => {
    const request = { method, url: `/admin/webhooks/${path}`, headers: { ...asAdmin, 'x-request-id': path } };
    return api.app.inject({ ...request, ...(payload ? { payload } : {}) });
  };
  const settings = { url: 'https://shop.example/hook', events: ['reservation.paid'] };
  const of = async (endpointId: string, count: number) => {
    const found = async () => (await read('?limit=1000')).entries.filter((entry) => entry['endpointId'] === endpointId);
    await expect.poll(async () => (await found()).length, { timeout: 15_000 }).toBe(count);
    return found();
  };

  test('created, changed, rotated, sent again, deleted: with who asked, and never a secret', async () => {
    const endpointId = newId();
    const secrets = [(await call('PUT', endpointId, settings)).json<{ secret: string }>().secret];
    await call('PUT', endpointId, { ...settings, active: false });
    await call('PUT', endpointId, settings);
    const saleId = await putSale(api);
    const won = await win(api, saleId, 'u');
    await record(api, won);
    await deliver(api, eventOf(won));
    const eventId = `${won.reservationId}_paid`;
    expect((await call('POST', `${endpointId}/deliveries/${eventId}/redeliver`)).statusCode).toBe(202);
    const rotated = (await call('POST', `${endpointId}/rotate`)).json<{ secret: string; oldSecretUntil: string }>();
    secrets.push(rotated.secret);
    await call('DELETE', endpointId);
    const shown = { ...settings, active: true };
    const entries = await of(endpointId, 6);
    expect(entries.map(({ action, who, outcome, before, after }) => ({ action, who, outcome, before, after }))).toEqual(
      [
        { action: 'create', after: shown },
        { action: 'change', before: shown, after: { ...shown, active: false } },
        { action: 'change', before: { ...shown, active: false }, after: shown },
        { action: 'redeliver', after: { eventId } },
        { action: 'rotate', after: { oldSecretUntil: rotated.oldSecretUntil } },
        { action: 'delete', before: shown },
      ].map((entry) => ({ before: undefined, after: undefined, who: 'token', outcome: 'done', ...entry })),
    );
    expect(entries[0]).toMatchObject({ endpointId, requestId: endpointId });
    expect(entries[0]).not.toHaveProperty('saleId');
    const { rows } = await api.db.query('select * from admin_journal where endpoint_id = $1', [endpointId]);
    for (const secret of secrets) expect(JSON.stringify(rows)).not.toContain(secret.slice('whsec_'.length));
    expect((await read(`?saleId=${endpointId}`)).entries).toEqual([]);
  });

  test('what was refused is told with its reason', async () => {
    const endpointId = newId();
    expectProblem(await call('DELETE', endpointId), 'endpoint_not_found');
    expectProblem(await call('POST', `${endpointId}/rotate`), 'endpoint_not_found');
    await call('PUT', endpointId, settings);
    expectProblem(await call('POST', `${endpointId}/deliveries/x/redeliver`), 'delivery_not_found');
    const entries = await of(endpointId, 4);
    expect(entries.map(({ action, outcome }) => `${String(action)} ${String(outcome)}`)).toEqual([
      ...['delete refused', 'rotate refused', 'create done', 'redeliver refused'],
    ]);
    expect(entries[0]?.['reason']).toBe(`endpoint_not_found: there is no endpoint ${endpointId}`);
  });

  test('a change and its entry are one', async () => {
    const endpointId = newId();
    await call('PUT', endpointId, settings);
    await call('POST', `${endpointId}/rotate`);
    const { rows: written } = await api.db.query(
      `select j.action, j.xid::text = case j.action when 'create' then e.xmin::text else s.xmin::text end as together
       from admin_journal j join webhook_endpoints e using (endpoint_id)
       join webhook_secrets s on s.endpoint_key = e.endpoint_key and s.until is null
       where endpoint_id = $1 order by j.entry_id`,
      [endpointId],
    );
    expect(written).toEqual(['create', 'rotate'].map((action) => ({ action, together: true })));
    const read = () =>
      api.db.query<object>('select * from webhook_endpoints join webhook_secrets using (endpoint_key)');
    const { rows: before } = await read();
    await api.db.query(
      `alter table admin_journal add constraint nothing_more check (endpoint_id <> '${endpointId}') not valid`,
    );
    try {
      const answers = await Promise.all([
        ...[call('PUT', endpointId, { ...settings, active: false }), call('POST', `${endpointId}/rotate`)],
        call('DELETE', endpointId),
      ]);
      expect(answers.map(({ statusCode }) => statusCode)).toEqual([500, 500, 500]);
      expect((await read()).rows).toEqual(before);
    } finally {
      await api.db.query('alter table admin_journal drop constraint nothing_more');
    }
  });
});

test('from the command line, by nobody’s request', async () => {
  const saleId = await putSale(api);
  await resizeSale(api.wired.stores, saleId, 12);
  const [, entry] = await entriesOf(saleId, 2);
  expect(entry).toMatchObject({ who: 'command', action: 'resize', before: { total: 10 }, after: { total: 12 } });
  expect(entry).not.toHaveProperty('requestId');
});

test('a reader who keeps the cursor misses nothing, whoever commits late', async () => {
  const by = { who: 'token', session: null, requestId: null } as const;
  const saleId = newId();
  const note = { action: 'pause', saleId, before: null, after: null } as const;
  const { pool } = api.wired.stores;
  const seen: unknown[] = [];
  let after = '';
  const readOn = async () => {
    const page = await read(`?saleId=${saleId}&limit=2${after}`);
    seen.push(...page.entries.map(({ entryId }) => entryId));
    if (page.next !== null) after = `&after=${page.next}`;
  };
  await transaction(pool, async (late) => {
    await writeJournal(late, by, note); // the first, and the last to be seen
    for (let n = 0; n < 3; n += 1) await writeJournal(pool, by, note);
    await readOn();
    expect(seen).toEqual([]);
  });
  const all = async () => {
    await readOn();
    return seen.length;
  };
  await expect.poll(all, { timeout: 15_000 }).toBe(4);
  expect(new Set(seen).size).toBe(4);
});

test.each(['update admin_journal set who = who', 'delete from admin_journal', 'truncate admin_journal'])(
  'it only grows: %s is refused',
  async (statement) => {
    await putSale(api);
    await expect(api.db.query(statement)).rejects.toThrow('admin_journal is append-only');
  },
);

test.each(['?limit=0', '?after=x', '?after=1', '?saleId=a.b', '?more=1'])('%s is refused', async (query) => {
  const answer = await api.app.inject({ method: 'GET', url: `/admin/journal${query}`, headers: asAdmin });
  expectProblem(answer, 'invalid_request');
});
