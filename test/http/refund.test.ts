/** POST /admin/sales/{saleId}/orders/{reservationId}/refund. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshStores, type Stores } from '../support/stores.ts';
import { admin, ask, deliver, eventOf, expectProblem, gateState, newId, press, putSale, record } from './api.ts';
import { reservationUrl, testApi, win, type TestApi, type Won } from './api.ts';

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

const refund = (
  { saleId, reservationId }: Pick<Won, 'saleId' | 'reservationId'>,
  body: object = { returnUnits: true },
) => admin(api, 'POST', `/${saleId}/orders/${reservationId}/refund`, body);
const pay = async (won: Won) => {
  await record(api, won);
  expect((await deliver(api, eventOf(won))).json()).toMatchObject({ outcome: 'paid' });
};

test.each([
  [true, { stock: '1', total: 1 }],
  [false, { stock: '0', total: 0 }],
])('units returned: %s', async (returnUnits, { stock, total }) => {
  const saleId = await putSale(api, { total: 1 });
  const won = await win(api, saleId, 'ann');
  await pay(won);
  expectProblem(await press(api, saleId, 'bob'), 'sold_out');
  for (const _ of ['once', 'again']) {
    const answer = await refund(won, { returnUnits });
    expect(answer.statusCode, answer.body).toBe(200);
    expect(answer.json()).toMatchObject({
      ...same(won),
      status: 'REFUNDED',
      unitsReturned: returnUnits,
      refund: 'PENDING',
    });
  }
  expectProblem(await refund(won, { returnUnits: !returnUnits }), 'refunded_otherwise');
  expect(await gateState(api, saleId)).toMatchObject({ stock, held: '0', buyers: 0 });
  expect((await admin(api, 'GET', `/${saleId}`)).json()).toMatchObject({
    ledger: { total, sold: 0, byStatus: { PAID: 0, REFUNDED: 1 } },
    gate: { total },
  });
  // The buyer sees it, and may buy again if there is something to buy.
  expect((await ask(api, reservationUrl(won))).json()).toEqual({ ...same(won), status: 'REFUNDED', refund: 'PENDING' });
  const again = await press(api, saleId, 'ann');
  expect(again.statusCode).toBe(returnUnits ? 202 : 409);
  const listed = await admin(api, 'GET', `/${saleId}/orders?status=REFUNDED`);
  expect(listed.json()).toMatchObject({ orders: [{ reservationId: won.reservationId, unitsReturned: returnUnits }] });
});
const same = ({ outcome: _, ...rest }: Won) => rest;

test('only what is paid, and what is there', async () => {
  const saleId = await putSale(api);
  const won = await win(api, saleId, 'ann');
  expectProblem(await refund(won), 'reservation_not_found'); // still in the queue
  await record(api, won);
  const body = expectProblem(await refund(won), 'not_paid');
  expect(body['detail']).toMatch(/is PENDING_PAYMENT: only what is PAID can be refunded/);
  await ask(api, reservationUrl(won), { method: 'DELETE' });
  expectProblem(await refund(won), 'not_paid');
  expectProblem(await refund({ saleId, reservationId: randomUUID() }), 'reservation_not_found');
  expectProblem(await refund({ saleId, reservationId: 'x' }), 'reservation_not_found');
  expectProblem(await refund({ saleId: newId(), reservationId: won.reservationId }), 'sale_not_found');
  expectProblem(
    await refund({ saleId: await putSale(api), reservationId: won.reservationId }),
    'reservation_not_found',
  );
});

test.each([{}, { returnUnits: 'true' }, { returnUnits: 1 }, { returnUnits: null }, { returnUnits: true, more: 1 }])(
  'bad input: %j',
  async (body) => {
    expectProblem(await refund({ saleId: newId(), reservationId: randomUUID() }, body), 'invalid_request');
  },
);

test('for admins only', async () => {
  const url = `/admin/sales/${newId()}/orders/${randomUUID()}/refund`;
  expectProblem(await ask(api, url, { method: 'POST', payload: { returnUnits: true } }), 'unauthorized');
});

test('money that comes for a refunded order: the same payment changes nothing, another is owed back', async () => {
  const saleId = await putSale(api);
  const won = await win(api, saleId, 'ann');
  await record(api, won);
  const paid = eventOf(won);
  await deliver(api, paid);
  await refund(won);
  expect((await deliver(api, paid)).json()).toMatchObject({ state: 'ignored', outcome: 'known_payment' });
  expect((await deliver(api, eventOf(won))).json()).toMatchObject({ outcome: 'refund_owed: refunded' });
  const { rows } = await api.db.query(
    `select r.reason from refunds r join payments p using (payment_id) where p.reservation_id = $1 order by 1`,
    [won.reservationId],
  );
  expect(rows).toEqual([{ reason: 'by_shop' }, { reason: 'refunded' }]);
});

test('a free order is refunded at once: there is nothing to be sent back', async () => {
  const won = await win(api, await putSale(api, { price: { amount: 0, currency: 'EUR' } }), 'ann');
  await pay(won);
  expect((await refund(won)).json()).toMatchObject({ status: 'REFUNDED', refund: 'SUCCEEDED' });
});
