/** What worker, keeper and commands do when they die: each of their crash points, in each thing that passes it. */
import { expect } from 'vitest';
import type { Hold } from '../../src/domain/reservation.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import { applyEvent } from '../../src/ledger/payments.ts';
import { refundOrder } from '../../src/ledger/refunding.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { cancelReservation } from '../../src/operations/cancel.ts';
import { openCheckout } from '../../src/operations/checkout.ts';
import { stripeProvider } from '../../src/provider/stripe.ts';
import { KEY, startStripe, type StripeStandIn } from '../support/stripe.ts';
import { endpointAt, letTimePass, outbox } from '../webhooks/house.ts';
import * as h from './house.ts';
import { capture, SALE, type Flow, type Scene } from './scene.ts';

const first = ({ told }: Scene): Hold => {
  const [hold] = told;
  if (!hold) throw new Error('nobody was told anything');
  return hold;
};
const all =
  (...checks: ((scene: Scene) => Promise<unknown>)[]) =>
  async (scene: Scene) => {
    for (const check of checks) await check(scene);
  };
const queued = async (scene: Scene) => scene.told.push(await h.winQueued(scene.house, scene.saleId, 'ann', 2));
const ordered = async (scene: Scene) => scene.told.push(await h.winOrder(scene.house, scene.saleId, 'ann', 2));
const apply = (type: 'payment.succeeded' | 'payment.canceled') => (scene: Scene) =>
  applyEvent(scene.house.pool, h.event(first(scene), type));
const due = (scene: Scene) => h.moveBack(scene.house, first(scene), 700_000);
const orderIs = (status: string, marked: boolean) => async (scene: Scene) =>
  expect(await h.orderOf(scene.house, first(scene))).toMatchObject({ status, marked });
const units =
  (wanted: object) =>
  async ({ house, saleId }: Scene) =>
    expect(await h.books(house, saleId)).toMatchObject(wanted);
const messages =
  (count: number) =>
  async ({ house }: Scene) =>
    expect(await h.messages(house)).toBe(count);
const loseGate = ({ house, saleId }: Scene) => house.redis.del(...gateKeys(saleId));

/** The gate sold one unit of one twice: it forgot the first winner. The second one's message is in the queue. */
async function surplus(scene: Scene): Promise<void> {
  const { house, saleId } = scene;
  await h.changeSale(house, saleId, { total: 1 });
  const goBack = await h.remember(house, saleId);
  const owner = await h.winOrder(house, saleId, 'owner');
  await goBack();
  const hold = await h.win(house, saleId, 'ann');
  await house.gate.queued(saleId, hold);
  await h.send(house, hold);
  scene.told.push(hold, owner);
}

/** The gate forgot a winner who has an order. */
async function forgotten(scene: Scene): Promise<void> {
  const goBack = await h.remember(scene.house, scene.saleId);
  await ordered(scene);
  await goBack();
}

/** The gate went back to before a release. */
async function backAgain(scene: Scene): Promise<void> {
  await ordered(scene);
  const goBack = await h.remember(scene.house, scene.saleId);
  await due(scene);
  await sweep(scene.house.stores, 10);
  await goBack();
}

/** A payment that came after the expiry: it is owed back. */
async function owed(scene: Scene): Promise<void> {
  await ordered(scene);
  await due(scene);
  await sweep(scene.house.stores, 10);
  await apply('payment.succeeded')(scene);
}
const refundIs =
  (status: string, madeByProvider: boolean) =>
  async ({ house, provider }: Scene) => {
    const { rows } = await house.db.query<{ id: string; status: string }>(
      'select refund_id as id, status from refunds',
    );
    expect(rows.map((row) => row.status)).toEqual([status]);
    const asked = await fetch(`${provider.url}/refunds/${rows[0]?.id}`);
    expect(asked.status, 'the provider made it').toBe(madeByProvider ? 200 : 404);
  };

/** A paid order of which the shop wants to hear. */
async function announced(scene: Scene): Promise<void> {
  await endpointAt(scene.house, 'shop', scene.shop);
  await ordered(scene);
  await apply('payment.succeeded')(scene);
}
const webhookIs =
  (status: string, calls: number) =>
  async ({ house, shop }: Scene) => {
    const rows = await outbox(house);
    expect(rows).toMatchObject([{ type: 'reservation.paid', status, claimed: status === 'PENDING' }]);
    expect(shop.calls.map(({ id }) => id)).toEqual(Array(calls).fill(rows[0]?.eventId));
  };
const claimEnds = ({ house }: Scene) => letTimePass(house, 120_000);
const captured = (scene: Scene) => capture(scene, first(scene));

/** Stripe in place of the provider: the first winner has a page to pay on, and gives the hold up. */
let stripe: StripeStandIn;
async function givenUpWithPage(scene: Scene): Promise<void> {
  const { house } = scene;
  await ordered(scene);
  stripe = await startStripe();
  const urls = { CHECKOUT_SUCCESS_URL: 'https://shop.example/a', CHECKOUT_CANCEL_URL: 'https://shop.example/b' };
  const env = { PAYMENT_PROVIDER: 'stripe', STRIPE_SECRET_KEY: KEY, STRIPE_API_BASE: stripe.url, ...urls };
  Object.assign(house.settings, env, { PAYMENT_PROVIDER_URL: '' });
  const [successUrl, cancelUrl] = [urls.CHECKOUT_SUCCESS_URL, urls.CHECKOUT_CANCEL_URL];
  const options = { keys: [KEY], webhookSecrets: [], apiBase: stripe.url, successUrl, cancelUrl, timeoutMs: 10_000 };
  const { checkout } = stripeProvider(options);
  if (!checkout) throw new Error('Stripe makes pages');
  await openCheckout(house.stores, checkout, first(scene), 10_000);
  await cancelReservation(house.stores, first(scene));
}
const pageIs =
  (atStripe: string, marked: boolean) =>
  async ({ house }: Scene) => {
    expect([...stripe.sessions.values()].map(({ status }) => status)).toEqual([atStripe]);
    const { rows } = await house.db.query('select closed_at is not null as marked from checkout_pages');
    expect(rows).toEqual([{ marked }]);
  };

const work = { command: ['work'] };
const keep = { command: ['keep'] };

export const workFlows: Flow[] = [
  {
    ...work,
    point: 'recorded',
    doing: 'recording, with a payment that came first',
    before: all(queued, apply('payment.succeeded')),
    left: all(orderIs('PENDING_PAYMENT', false), messages(1)),
    end: all(orderIs('PAID', false), units({ held: 2, sold: 2 })),
  },
  {
    ...work,
    point: 'before_acknowledge',
    doing: 'recording',
    before: queued,
    left: all(orderIs('PENDING_PAYMENT', false), messages(1)),
    end: units({ held: 2, sold: 2 }),
  },
  {
    ...work,
    point: 'order_ended',
    doing: 'refusing a surplus winner',
    gateForgot: true,
    before: surplus,
    left: all(orderIs('REJECTED', false), messages(1), units({ held: 1, forfeited: 0 })),
    end: all(orderIs('REJECTED', true), units({ stock: 0, held: 1, forfeited: 0, sold: 1 })),
  },
  {
    ...work,
    point: 'gate_gave_back',
    doing: 'refusing a surplus winner',
    gateForgot: true,
    before: surplus,
    left: all(orderIs('REJECTED', false), messages(1), units({ held: 0, forfeited: 1 })),
    end: all(orderIs('REJECTED', true), units({ stock: 0, held: 1, forfeited: 0, sold: 1 })),
  },
  {
    ...work,
    point: 'order_ended',
    doing: 'recording, with a cancellation that came first',
    before: all(queued, apply('payment.canceled')),
    left: all(orderIs('CANCELLED', false), messages(1), units({ held: 2, sold: 0 })),
    end: all(orderIs('CANCELLED', true), units({ stock: 5, held: 0, sold: 0 })),
  },
];

export const keepFlows: Flow[] = [
  {
    ...keep,
    point: 'queue_has_it',
    doing: 'sending a marked hold again',
    before: async (scene) => {
      const hold = await h.win(scene.house, scene.saleId, 'ann');
      await h.age(scene.house, hold, 60_000);
    },
    left: async ({ house, saleId }) => {
      expect(await h.messages(house)).toBe(1);
      expect(await h.marked(house, saleId)).toEqual(['ann']);
    },
    end: units({ held: 1, sold: 1 }),
  },
  {
    ...keep,
    point: 'queue_has_it',
    doing: 'sending again what the queue has lost',
    before: async (scene) => {
      await queued(scene);
      await h.loseQueue(scene.house);
      await h.age(scene.house, first(scene), scene.house.config.LOST_GRACE_MS);
    },
    left: messages(1),
    end: units({ held: 2, sold: 2 }),
  },
  {
    ...keep,
    point: 'order_ended',
    doing: 'expiring',
    before: all(ordered, due),
    left: all(orderIs('EXPIRED', false), units({ held: 2, sold: 0 })),
    end: all(orderIs('EXPIRED', true), units({ stock: 5, held: 0 })),
  },
  {
    ...keep,
    point: 'gate_gave_back',
    doing: 'expiring',
    before: all(ordered, due),
    left: all(orderIs('EXPIRED', false), units({ stock: 5, held: 0 })),
    end: all(orderIs('EXPIRED', true), units({ stock: 5, held: 0 })),
  },
  {
    ...keep,
    point: 'order_ended',
    doing: 'dropping a hold that is back again',
    gateForgot: true,
    before: backAgain,
    left: all(orderIs('EXPIRED', true), units({ held: 2, sold: 0 })),
    end: units({ stock: 5, held: 0 }),
  },
  {
    ...keep,
    point: 'gate_gave_back',
    doing: 'dropping a hold that is back again',
    gateForgot: true,
    before: backAgain,
    left: units({ stock: 5, held: 0 }),
    end: units({ stock: 5, held: 0 }),
  },
  {
    ...keep,
    point: 'total_at_gate',
    doing: 'releasing what a refund took out of the sale',
    before: async (scene) => {
      await ordered(scene);
      await apply('payment.succeeded')(scene);
      await captured(scene);
      await refundOrder(scene.house.pool, first(scene), false);
    },
    left: all(orderIs('REFUNDED', false), units({ stock: 1, held: 2 })), // not sold again in between
    end: all(orderIs('REFUNDED', true), units({ stock: 3, held: 0, sold: 0 }), refundIs('SUCCEEDED', true)),
  },
  {
    ...keep,
    point: 'adopted',
    doing: 'adopting',
    gateForgot: true,
    before: forgotten,
    left: units({ stock: 3, held: 2 }),
    end: units({ stock: 3, held: 2, sold: 2 }),
  },
  ...(['rebuild_begun', 'rebuild_loaded', 'rebuild_opened'] as const).map((point): Flow => {
    return {
      ...keep,
      point,
      doing: 'rebuilding',
      gateForgot: true,
      before: all(ordered, loseGate),
      left: async ({ house, saleId }) => {
        const figures = await house.gate.figures(saleId);
        expect(figures?.held).toBe(point === 'rebuild_opened' ? 2 : undefined);
        const holds = await house.redis.hlen(gateKeys(saleId)[2]);
        expect(holds).toBe(point === 'rebuild_begun' ? 0 : 1);
      },
      end: units({ stock: 3, held: 2, sold: 2 }),
    };
  }),
  {
    ...keep,
    point: 'page_closed',
    doing: 'closing the page of a hold that was given up',
    before: givenUpWithPage,
    left: pageIs('expired', false),
    end: all(pageIs('expired', true), () => stripe.close()),
  },
  {
    ...keep,
    point: 'refund_claimed',
    doing: 'refunding',
    before: all(owed, captured),
    left: refundIs('PENDING', false),
    end: refundIs('SUCCEEDED', true),
  },
  {
    ...keep,
    point: 'refund_made',
    doing: 'refunding',
    before: all(owed, captured),
    left: refundIs('PENDING', true),
    end: refundIs('SUCCEEDED', true),
  },
  {
    ...keep,
    point: 'webhook_claimed',
    doing: 'telling the shop',
    before: announced,
    left: all(webhookIs('PENDING', 0), claimEnds),
    end: webhookIs('DELIVERED', 1),
  },
  {
    ...keep,
    point: 'webhook_answered',
    doing: 'telling the shop, which has heard',
    before: announced,
    left: all(webhookIs('PENDING', 1), claimEnds),
    end: webhookIs('DELIVERED', 2), // of one id
  },
];

export const commandFlows: Flow[] = [
  {
    command: ['sweep', '--once'],
    point: 'order_ended',
    doing: 'expiring, from cron',
    before: all(ordered, due),
    left: orderIs('EXPIRED', false),
    end: units({ stock: 5, held: 0 }),
  },
  {
    command: ['reconcile', '--once'],
    point: 'adopted',
    doing: 'adopting, by hand',
    gateForgot: true,
    before: forgotten,
    left: units({ held: 2 }),
    end: units({ stock: 3, held: 2, sold: 2 }),
  },
  {
    command: ['rebuild', '--sale', SALE],
    point: 'rebuild_loaded',
    doing: 'rebuilding, by hand',
    gateForgot: true,
    before: all(ordered, loseGate),
    left: async ({ house, saleId }) => expect(await house.gate.figures(saleId)).toBeUndefined(),
    end: units({ stock: 3, held: 2, sold: 2 }),
  },
];
