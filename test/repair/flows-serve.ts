/** What the API does when it dies: each of its crash points, in each request that passes it. */
import { expect } from 'vitest';
import { Webhook } from 'standardwebhooks';
import type { Hold } from '../../src/domain/reservation.ts';
import { applyEvent } from '../../src/ledger/payments.ts';
import { PRICE, SECRET } from '../ledger/house.ts';
import * as h from './house.ts';
import { capture, type Flow, type Scene } from './scene.ts';

const press = ({ saleId }: Scene) => ({
  method: 'POST',
  path: `/sales/${saleId}/reserve`,
  body: JSON.stringify({ userId: 'ann' }),
});

const first = ({ told }: Scene): Hold => {
  const [hold] = told;
  if (!hold) throw new Error('nobody was told anything');
  return hold;
};

const cancel = (scene: Scene) => {
  const { reservationId, userId } = first(scene);
  return { method: 'DELETE', path: `/sales/${scene.saleId}/reservations/${reservationId}?userId=${userId}` };
};

/** A signed event about the first winner's payment; the same id whenever it is delivered. */
const event = (type: string) => (scene: Scene) => {
  const { reservationId, amount, currency } = first(scene);
  const data = { paymentId: `pay-${reservationId}`, reservationId, amount, currency };
  const body = JSON.stringify({ type, timestamp: new Date().toISOString(), data });
  const [id, at] = [`evt-${reservationId}`, new Date()];
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(SECRET).sign(id, at, body),
  };
  return { method: 'POST', path: '/webhooks/payments', body, headers };
};

/** The first winner's order, paid. */
const paid = async (scene: Scene) => {
  await ordered(scene);
  await capture(scene, first(scene));
  await applyEvent(scene.house.pool, h.event(first(scene), 'payment.succeeded'));
};
const refund = (returnUnits: boolean) => (scene: Scene) => ({
  method: 'POST',
  path: `/admin/sales/${scene.saleId}/orders/${first(scene).reservationId}/refund`,
  body: JSON.stringify({ returnUnits }),
});
/** Its money is given back, once. */
const oneRefund = async (scene: Scene) => {
  const { rows } = await scene.house.db.query('select reason from refunds where payment_id = $1', [
    `pay-${first(scene).reservationId}`,
  ]);
  expect(rows).toEqual([{ reason: 'by_shop' }]);
};

const settings = (total: number) =>
  JSON.stringify({
    ...{ name: 'A sale', total, holdSeconds: 600, maxPerReservation: 5, price: { amount: PRICE, currency: 'EUR' } },
    startsAt: '2020-01-01T00:00:00Z',
    endsAt: '2100-01-01T00:00:00Z',
  });
const put =
  (total: number, idOf = ({ saleId }: Scene) => saleId) =>
  (scene: Scene) => ({ method: 'PUT', path: `/admin/sales/${idOf(scene)}`, body: settings(total) });
const newOne = ({ saleId }: Scene) => `${saleId}-new`;

const ordered = async (scene: Scene) => scene.told.push(await h.winOrder(scene.house, scene.saleId, 'ann', 2));
const queued = async (scene: Scene) => scene.told.push(await h.winQueued(scene.house, scene.saleId, 'ann', 2));
const orderIs = (status: string, marked: boolean) => async (scene: Scene) =>
  expect(await h.orderOf(scene.house, first(scene))).toMatchObject({ status, marked });
const units =
  (wanted: object) =>
  async ({ house, saleId }: Scene) =>
    expect(await h.books(house, saleId)).toMatchObject(wanted);
const all =
  (...checks: ((scene: Scene) => Promise<unknown>)[]) =>
  async (scene: Scene) => {
    for (const check of checks) await check(scene);
  };
const isMarked =
  (yes: boolean, messages: number) =>
  async ({ house, saleId, messages: before }: Scene) => {
    expect(await h.marked(house, saleId)).toEqual(yes ? ['ann'] : []);
    expect((await h.messages(house)) - before).toBe(messages);
  };

const serve = { command: ['serve'] };

export const serveFlows: Flow[] = [
  {
    ...serve,
    point: 'gate_decided',
    doing: 'a press; the buyer presses again',
    request: press,
    left: all(isMarked(true, 0), units({ held: 1, sold: 0 })),
    end: units({ held: 1, sold: 1 }),
  },
  {
    ...serve,
    point: 'gate_decided',
    doing: 'a press; nobody comes again',
    request: press,
    left: all(isMarked(true, 0), units({ held: 1, sold: 0 })),
    again: false,
    end: units({ held: 1, sold: 1 }),
  },
  {
    ...serve,
    point: 'queue_has_it',
    doing: 'a press; the buyer presses again',
    request: press,
    left: all(isMarked(true, 1), units({ held: 1, sold: 0 })),
    end: units({ held: 1, sold: 1 }),
  },
  {
    ...serve,
    point: 'queue_has_it',
    doing: 'a press on a hold that is marked; nobody comes again',
    before: ({ house, saleId }) => h.win(house, saleId, 'ann'),
    request: press,
    left: isMarked(true, 1),
    again: false,
    end: units({ held: 1, sold: 1 }),
  },
  {
    ...serve,
    point: 'event_applied',
    doing: 'a payment; the provider sends it again',
    before: ordered,
    request: event('payment.succeeded'),
    left: orderIs('PAID', false),
    end: all(orderIs('PAID', false), units({ held: 2, sold: 2 })),
  },
  {
    ...serve,
    point: 'event_applied',
    doing: 'a cancelled payment; the provider does not send it again',
    before: ordered,
    request: event('payment.canceled'),
    left: all(orderIs('CANCELLED', false), units({ held: 2, sold: 0 })),
    again: false,
    end: all(orderIs('CANCELLED', true), units({ held: 0, sold: 0, stock: 5 })),
  },
  {
    ...serve,
    point: 'order_ended',
    doing: 'a cancelled payment; the provider sends it again',
    before: ordered,
    request: event('payment.canceled'),
    left: orderIs('CANCELLED', false),
    end: units({ held: 0, sold: 0, stock: 5 }),
  },
  {
    ...serve,
    point: 'order_ended',
    doing: 'giving up an order; nobody comes again',
    before: ordered,
    request: cancel,
    left: all(orderIs('CANCELLED', false), units({ held: 2, sold: 0 })),
    again: false,
    end: units({ held: 0, sold: 0, stock: 5 }),
  },
  {
    ...serve,
    point: 'order_ended',
    doing: 'giving up what is still in the queue; the buyer does so again',
    before: queued,
    request: cancel,
    left: all(orderIs('CANCELLED', false), isMarked(false, 1)),
    end: all(orderIs('CANCELLED', true), units({ held: 0, sold: 0, stock: 5 })),
  },
  {
    ...serve,
    point: 'gate_gave_back',
    doing: 'giving up an order; the buyer does so again',
    before: ordered,
    request: cancel,
    left: all(orderIs('CANCELLED', false), units({ held: 0, sold: 0, stock: 5 })),
    end: all(orderIs('CANCELLED', true), units({ held: 0, sold: 0, stock: 5 })),
  },
  {
    ...serve,
    point: 'order_ended',
    doing: 'refunding, the units for sale again; nobody asks again',
    before: paid,
    request: refund(true),
    left: all(orderIs('REFUNDED', false), units({ held: 2, sold: 0, stock: 3 }), oneRefund),
    again: false,
    end: all(orderIs('REFUNDED', true), units({ held: 0, sold: 0, stock: 5 }), oneRefund),
  },
  {
    ...serve,
    point: 'order_ended',
    doing: 'refunding, the units out of the sale; the shop asks again',
    before: paid,
    request: refund(false),
    left: all(orderIs('REFUNDED', false), units({ held: 2, sold: 0, stock: 3 }), oneRefund),
    end: all(orderIs('REFUNDED', true), units({ held: 0, sold: 0, stock: 3 }), oneRefund),
  },
  {
    ...serve,
    point: 'total_at_gate',
    doing: 'refunding, the units out of the sale; nobody asks again',
    before: paid,
    request: refund(false),
    left: all(orderIs('REFUNDED', false), units({ held: 2, sold: 0, stock: 1 })), // the smaller total first
    again: false,
    end: all(orderIs('REFUNDED', true), units({ held: 0, sold: 0, stock: 3 }), oneRefund),
  },
  {
    ...serve,
    point: 'rebuild_begun',
    doing: 'creating a sale; the admin does so again',
    request: put(7, newOne),
    left: async (scene) => {
      expect(await scene.house.gate.figures(newOne(scene))).toBeUndefined();
      expect((await h.saleOf(scene.house, newOne(scene))).openedAt).toBeNull();
    },
    end: async (scene) => expect(await h.books(scene.house, newOne(scene))).toMatchObject({ stock: 7 }),
  },
  {
    ...serve,
    point: 'rebuild_opened',
    doing: 'creating a sale; nobody does so again, and buyers come',
    request: put(7, newOne),
    left: async (scene) => {
      expect(await scene.house.gate.figures(newOne(scene))).toMatchObject({ stock: 7 });
      expect((await h.saleOf(scene.house, newOne(scene))).openedAt).toBeNull();
      scene.told.push(await h.winQueued(scene.house, newOne(scene), 'ann'));
    },
    again: false,
    end: async (scene) => {
      expect((await h.saleOf(scene.house, newOne(scene))).openedAt).not.toBeNull();
      expect(await h.books(scene.house, newOne(scene))).toMatchObject({ stock: 6, held: 1, sold: 1 });
    },
  },
  {
    ...serve,
    point: 'settings_in_ledger',
    doing: 'growing a sale; nobody does so again',
    request: put(9),
    left: units({ stock: 5 }),
    again: false,
    end: units({ stock: 9 }),
  },
  {
    ...serve,
    point: 'settings_in_ledger',
    doing: 'pausing a sale; the admin does so again',
    request: ({ saleId }) => ({ method: 'POST', path: `/admin/sales/${saleId}/pause` }),
    left: async ({ house, saleId }) => {
      expect(await h.saleOf(house, saleId)).toMatchObject({ state: 'paused' });
      expect(await house.gate.figures(saleId)).toMatchObject({ state: 'open' });
    },
    end: async ({ house, saleId }) => expect(await house.gate.figures(saleId)).toMatchObject({ state: 'paused' }),
  },
  {
    ...serve,
    point: 'settings_at_gate',
    doing: 'shrinking a sale; the admin does so again',
    before: ordered,
    request: put(3),
    left: all(units({ stock: 1 }), async ({ house, saleId }) =>
      expect(await h.saleOf(house, saleId)).toMatchObject({ total: 5 }),
    ),
    end: units({ stock: 1, held: 2 }),
  },
  {
    ...serve,
    point: 'settings_at_gate',
    doing: 'shrinking a sale; nobody does so again: it was never shrunk',
    before: ordered,
    request: put(3),
    left: units({ stock: 1 }),
    again: false,
    end: units({ stock: 3, held: 2 }),
  },
];
