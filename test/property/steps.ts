/** The steps that a random walk is made of: each does something to the real stores, and the same to the model. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect } from 'vitest';
import type { PaymentEventType } from '../../src/domain/payment.ts';
import { reconcile } from '../../src/keeper/reconcile.ts';
import { payRefunds } from '../../src/keeper/refund.ts';
import { resend } from '../../src/keeper/resend.ts';
import { sweep } from '../../src/keeper/sweep.ts';
import { cancel, expireDue } from '../../src/ledger/orders.ts';
import { applyEvent, settleParked } from '../../src/ledger/payments.ts';
import { refundOrder } from '../../src/ledger/refunding.ts';
import { getSale } from '../../src/ledger/sales.ts';
import { cancelReservation } from '../../src/operations/cancel.ts';
import { enqueue } from '../../src/operations/enqueue.ts';
import { finish } from '../../src/operations/finish.ts';
import { refundReservation } from '../../src/operations/refund.ts';
import { putSale, SaleConflict, setState } from '../../src/operations/sales.ts';
import { QueueUnavailable } from '../../src/queue/producer.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { inTime, saleSettings } from '../races/system.ts';
import { GRACES, HOUR, MAX_QTY, type Model, type Reservation } from './model.ts';
import type { Fate, World } from './world.ts';

type Both = { world: World; model: Model };
type Step = { name: string } & Record<string, unknown>;

const USERS = ['ann', 'bob', 'cleo', 'dan', 'eve'];
const fate = fc.oneof(
  { weight: 2, arbitrary: fc.constant<Fate>('taken') },
  fc.constantFrom<Fate>('unheard', 'refused'),
);
const pick = fc.nat({ max: 1000 });
const step = <S extends string, T extends object>(name: S, args: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record({ name: fc.constant(name), ...args }) as unknown as fc.Arbitrary<{ name: S } & T>;

const PRESS = step('press', { user: fc.constantFrom(...USERS), qty: fc.integer({ min: 1, max: MAX_QTY + 1 }), fate });
const DELIVER = step('deliver', { from: pick, count: fc.integer({ min: 1, max: 4 }), keep: fc.boolean() });
const LOSE = step('lose', { at: pick });
const CANCEL = step('cancel', { which: pick, dies: fc.boolean() });
const PAY = step('pay', {
  which: pick,
  how: fc.oneof(
    { weight: 3, arbitrary: fc.constant('right' as const) },
    { weight: 2, arbitrary: fc.constantFrom('less', 'more', 'currency') },
    fc.constantFrom('again', 'stranger', 'nonsense'),
  ),
});
const GIVE_UP = step('give up paying', { which: pick, captured: fc.boolean(), dies: fc.boolean() });
const DECLINE = step('decline', { which: pick });
const TIME = step('time', { hours: fc.constantFrom(2, 5, 11, 25) });
const SWEEP = step('sweep', { how: fc.constantFrom('once', 'twice at once', 'dies') });
const RESEND = step('resend', { fate });
const PARKED = step('parked', {});
const REFUND = step('refund', { failing: fc.boolean() });
const GIVE_BACK = step('give the money back', { which: pick, returnUnits: fc.boolean(), dies: fc.boolean() });
const RECONCILE = step('reconcile', { fate });
const RESIZE = step('resize', { total: fc.integer({ min: 0, max: 9 }) });
const TERMS = step('terms', { price: fc.integer({ min: 0, max: 3 }), hours: fc.constantFrom(1, 10, 30) });
const PAUSE = step('pause', { paused: fc.boolean() });

/** One random step. What moves the walk on comes more often. */
export const anyStep = fc.oneof(
  { weight: 8, arbitrary: PRESS },
  { weight: 6, arbitrary: DELIVER },
  { weight: 6, arbitrary: PAY },
  { weight: 2, arbitrary: CANCEL },
  { weight: 2, arbitrary: GIVE_UP },
  { weight: 3, arbitrary: TIME },
  { weight: 3, arbitrary: SWEEP },
  { weight: 2, arbitrary: RESEND },
  { weight: 3, arbitrary: GIVE_BACK },
  ...[LOSE, DECLINE, PARKED, REFUND, RECONCILE, RESIZE, TERMS, PAUSE],
);
export type AnyStep = typeof anyStep extends fc.Arbitrary<infer S> ? S : never;

/** Does one step to both. */
export async function take(both: Both, one: AnyStep): Promise<void> {
  const { world, model } = both;
  world.queue.fate = 'fate' in one ? one.fate : 'taken';
  switch (one.name) {
    case 'press':
      return press(both, one.user, one.qty);
    case 'deliver': {
      const holds = world.queue.receive(one.from, one.count, one.keep);
      const statuses = holds.length > 0 ? await recordHolds(world.stores, holds) : [];
      expect(statuses.filter((status) => typeof status !== 'string')).toEqual([]);
      for (const { reservationId } of holds) model.recorded(reservationId);
      return;
    }
    case 'lose':
      world.queue.lose(one.at);
      return;
    case 'cancel':
      return give(both, one.which, one.dies);
    case 'pay':
      return pay(both, one.which, one.how);
    case 'give up paying':
      return giveUp(both, one.which, one.captured, one.dies);
    case 'decline':
      await send(both, 'payment.failed', payId(both), chosen(both, one.which)?.id ?? randomUUID(), 1);
      return;
    case 'time':
      await world.passTime(one.hours * HOUR);
      model.passTime(one.hours * HOUR);
      return;
    case 'sweep':
      return sweepUp(both, one.how);
    case 'resend':
      return sendAgain(both);
    case 'parked':
      return settle(both);
    case 'refund':
      world.provider.failing = one.failing;
      await payRefunds(world.stores, world.provider, { backoffMs: HOUR, keyLifetimeMs: HOUR, batch: 100 });
      return;
    case 'give the money back':
      return giveMoneyBack(both, one.which, one.returnUnits, one.dies);
    case 'reconcile':
      return compare(both);
    case 'resize':
      return resize(both, one.total);
    case 'terms':
      model.price = one.price;
      model.holdMs = one.hours * HOUR;
      await putSale(world.stores, world.saleId, settingsOf(model));
      model.gateBehind = 0;
      return;
    case 'pause':
      model.paused = one.paused;
      await setState(world.stores, world.saleId, one.paused ? 'paused' : 'open');
      model.gateBehind = 0;
      return;
  }
}

export function settingsOf(model: Model) {
  const { total, price, holdMs } = model;
  const terms = { total, holdSeconds: holdMs / 1000, maxPerReservation: MAX_QTY };
  // The same times whenever they are asked for: a resize is not a new beginning.
  const times = { startsAt: '2020-01-01T00:00:00Z', endsAt: '2099-01-01T00:00:00Z' };
  return saleSettings({ ...terms, ...times, price: { amount: price, currency: 'EUR' } });
}

function chosen({ model }: Both, which: number): Reservation | undefined {
  const all = model.all();
  return all[which % Math.max(1, all.length)];
}

/** As POST …/reserve does it. */
async function press({ world, model }: Both, user: string, qty: number): Promise<void> {
  const { gate } = world.stores;
  const reservationId = randomUUID();
  const answer = await gate.reserve(world.saleId, { userId: user, reservationId, qty }, inTime());
  expect(answer.outcome, `what ${user} is told`).toBe(model.answer(user, qty));
  if (answer.outcome !== 'ok' && answer.outcome !== 'dup') return;
  if (answer.outcome === 'ok') model.reserve(reservationId, user, qty);
  const one = model.holderOf(user);
  if (!one) throw new Error(`${user} holds nothing in the model`);
  expect(answer.hold).toMatchObject({ reservationId: one.id, qty: one.qty, amount: one.amount });
  if (answer.outcome === 'dup') expect(answer.queued, 'whether the queue has it').toBe(one.mark === undefined);
  if (answer.outcome === 'dup' && answer.queued) return;
  const sent = await enqueue(world.stores, answer.hold, inTime()).then(
    () => true,
    (error: unknown) => {
      if (!(error instanceof QueueUnavailable)) throw error;
      return false;
    },
  );
  await gate.drained();
  if (sent) one.mark = undefined;
}

async function give(both: Both, which: number, dies: boolean): Promise<void> {
  const { world, model } = both;
  const one = chosen(both, which);
  if (!one) return;
  const wanted = { reservationId: one.id, saleId: world.saleId, userId: one.user };
  if (dies) await cancel(world.stores.pool, wanted, await world.stores.gate.hold(world.saleId, one.user));
  else await cancelReservation(world.stores, wanted);
  model.cancel(one.id);
  if (!dies) model.giveBack(one);
}

/** One that dies after its commit leaves the rest to the keeper. */
async function giveMoneyBack(both: Both, which: number, returnUnits: boolean, dies: boolean): Promise<void> {
  const { world, model } = both;
  const one = chosen(both, which);
  if (one?.status === undefined) return;
  const wanted = { reservationId: one.id, saleId: world.saleId };
  const expected = model.refund(one, returnUnits);
  if (dies && expected === 'refunded') {
    await refundOrder(world.stores.pool, wanted, returnUnits);
    return;
  }
  const answer: unknown = await refundReservation(world.stores, wanted, returnUnits).catch((error: unknown) => error);
  if (expected === 'refunded' || expected === 'known')
    expect(answer).toMatchObject({ status: 'REFUNDED', unitsReturned: returnUnits });
  else expect(answer).toMatchObject({ code: expected });
  if (expected === 'refunded') model.giveBack(one);
}

const payId = ({ world, model }: Both) =>
  `${world.saleId}-${String(model.payments.size).padStart(4, '0')}-${randomUUID()}`;

async function send(
  both: Both,
  type: PaymentEventType,
  paymentId: string,
  reservationId: string,
  amount: number,
  currency = 'EUR',
) {
  const event = { eventId: randomUUID(), type, paymentId, reservationId, amount, currency };
  const applied = await applyEvent(both.world.stores.pool, event);
  // The provider sends it again, and again the one after: nothing may change.
  const again = await applyEvent(both.world.stores.pool, event);
  expect(again.ended).toEqual([]);
  return applied.ended;
}

async function pay(both: Both, which: number, how: string): Promise<void> {
  const { model } = both;
  const one = chosen(both, which);
  const amount = (one?.amount ?? 5) + (how === 'more' ? 1 : how === 'less' ? -1 : 0);
  if (amount < 0) return; // nothing is less than nothing: the interface refuses it
  const reservationId = how === 'nonsense' ? 'no-reservation' : how === 'stranger' ? randomUUID() : one?.id;
  if (reservationId === undefined) return;
  const known = [...model.payments.keys()];
  const paymentId = how === 'again' ? known[which % Math.max(1, known.length)] : payId(both);
  if (paymentId === undefined) return;
  await send(both, 'payment.succeeded', paymentId, reservationId, amount, how === 'currency' ? 'USD' : 'EUR');
  model.pay(paymentId, reservationId, ['right', 'again'].includes(how), how !== 'nonsense');
}

async function giveUp(both: Both, which: number, captured: boolean, dies: boolean): Promise<void> {
  const { world, model } = both;
  const one = chosen(both, which);
  if (!one) return;
  const of = [...model.payments.values()].find(({ reservationId }) => reservationId === one.id);
  const paymentId = captured && of ? of.id : payId(both);
  const ended = await send(both, 'payment.canceled', paymentId, one.id, one.amount);
  const inModel = model.cancelPayment(paymentId, one.id);
  expect(ended.map(({ reservationId }) => reservationId)).toEqual(inModel ? [inModel.id] : []);
  if (dies) return;
  await finish(world.stores, ended);
  if (inModel) model.giveBack(inModel);
}

async function sweepUp({ world, model }: Both, how: string): Promise<void> {
  model.expire();
  if (how === 'dies') {
    await expireDue(world.stores.pool, 100);
    return;
  }
  await Promise.all([sweep(world.stores, 2), ...(how === 'once' ? [] : [sweep(world.stores, 3)])]);
  model.giveBackAll();
}

async function sendAgain({ world, model }: Both): Promise<void> {
  const due = model.resend();
  const sale = await getSale(world.stores.pool, world.saleId);
  if (!sale) throw new Error('the sale is gone');
  const done = await resend(world.stores, sale, { graceMs: GRACES.mark, batch: 100, timeoutMs: 10_000 });
  await world.stores.gate.drained();
  const taken = world.queue.fate === 'taken';
  expect(done).toEqual({ resent: taken ? due.length : 0, failed: taken ? 0 : due.length });
  if (taken) for (const one of due) one.mark = undefined;
}

async function compare({ world, model }: Both): Promise<void> {
  const options = { batch: 100, lostGraceMs: GRACES.lost, timeoutMs: 10_000 };
  const done = await reconcile(world.stores, world.saleId, options);
  await world.stores.gate.drained();
  const lost = model.lost();
  if (world.queue.fate === 'taken') for (const one of lost) one.mark = undefined;
  model.giveBackAll();
  const found = { adopted: 0, blocked: 0, forfeited: 0, settled: 0 }; // the gate has lost nothing
  expect(done).toMatchObject({ ...found, resent: world.queue.fate === 'taken' ? lost.length : 0 });
}

async function settle({ world, model }: Both): Promise<void> {
  const settled = await settleParked(world.stores.pool, GRACES.parked, 100);
  const ended = settled.flatMap((applied) => applied.ended);
  await finish(world.stores, ended);
  model.settleParked();
}

async function resize({ world, model }: Both, total: number): Promise<void> {
  const tooLow = total < model.total && total < model.heldUnits();
  const put = putSale(world.stores, world.saleId, { ...settingsOf(model), total });
  if (tooLow) {
    const refused: unknown = await put.catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(SaleConflict);
    expect(refused).toMatchObject({ code: 'total_too_low' });
  } else {
    await put;
    model.total = total;
    model.gateBehind = 0;
  }
}

/** Everything that is still under way comes to its end: the queue delivers, time passes, the keeper makes its rounds. */
export async function comeToRest(both: Both): Promise<void> {
  const round: Step[] = [
    { name: 'time', hours: 25 },
    { name: 'resend', fate: 'taken' },
    { name: 'reconcile', fate: 'taken' },
    { name: 'deliver', from: 0, count: 1000, keep: false },
    { name: 'sweep', how: 'once' },
    { name: 'parked' },
    { name: 'refund', failing: false },
  ];
  for (let n = 0; n < 2; n += 1) for (const one of round) await take(both, one as unknown as AnyStep);
}
