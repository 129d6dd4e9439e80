/** A buyer's visit: press Buy, again if there was no answer, and then whatever the plan says becomes of the hold. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MadePayment, Purpose, Told } from './model.ts';
import type { Fate, Visit } from './plan.ts';
import type { Answer, World } from './world.ts';

/** Tries at giving up, and pause between them, while the system cannot say that it is done. */
const CANCEL_TRIES = 6;
const CANCEL_PAUSE_MS = 700;

export async function visit(world: World, plan: Visit): Promise<void> {
  const told = await press(world, plan);
  if (!told || !world.model.claim(told.reservationId)) return;
  await pause(world, plan.fate === 'payAtOnce' ? 0 : plan.think * plan.sale.holdSeconds * 1000);
  await fates[plan.fate](world, plan, told);
  for (const lookMs of plan.lookMs) {
    await pause(world, lookMs);
    await look(world, plan, told);
  }
}

/** @returns what the buyer was told to hold, if anything */
async function press(world: World, plan: Visit): Promise<Told | undefined> {
  let told: Told | undefined;
  if (plan.pressing === 'twice') {
    const both = await Promise.all([reserve(world, plan, plan.api), reserve(world, plan, other(plan.api))]);
    told = both[0] ?? both[1];
  } else {
    told = await reserve(world, plan, plan.api, plan.pressing === 'cut' ? plan.cutAfterMs : undefined);
  }
  for (const [n, againMs] of plan.againMs.entries()) {
    if (told || world.ending.aborted) break;
    await pause(world, againMs);
    told = await reserve(world, plan, n % 2 === 0 ? other(plan.api) : plan.api);
  }
  return told;
}

const other = (api: 0 | 1): 0 | 1 => (api === 0 ? 1 : 0);

async function reserve(world: World, plan: Visit, api: 0 | 1, cutAfterMs?: number): Promise<Told | undefined> {
  const { userId, qty } = plan;
  const { saleId } = plan.sale;
  world.model.asks({ saleId, userId, qty });
  const askedAt = Date.now();
  const answer = await world.ask(api, 'POST', `/sales/${saleId}/reserve`, {
    body: { userId, qty },
    ...(cutAfterMs === undefined ? {} : { cutAfterMs }),
  });
  if (answer?.body.code === 'sold_out') world.model.soldOut(saleId, userId, askedAt);
  if (answer?.status !== 200 && answer?.status !== 202) return undefined;
  const told = read(answer);
  if (told.saleId !== saleId || told.userId !== userId) {
    world.model.wrongAnswers.push(`${userId} was told of ${told.userId}'s hold in ${told.saleId}`);
  }
  world.model.tells(told);
  return told;
}

function read({ body }: Answer): Told {
  const { reservationId, saleId, userId, currency, qty, amount, reservedAt, expiresAt } = body;
  return {
    ...{ reservationId: String(reservationId), saleId: String(saleId), userId: String(userId) },
    ...{ currency: String(currency), qty: Number(qty), amount: Number(amount) },
    ...{ reservedAt: Date.parse(String(reservedAt)), expiresAt: Date.parse(String(expiresAt)) },
  };
}

type Act = (world: World, plan: Visit, told: Told) => Promise<void>;

const fates: Record<Fate, Act> = {
  abandon: () => Promise.resolve(),
  pay: (world, plan, told) => pay(world, plan, told, 'right'),
  payAtOnce: (world, plan, told) => pay(world, plan, told, 'right'),
  payTwice: async (world, plan, told) => {
    await pay(world, plan, told, 'right');
    await pay(world, plan, told, 'second');
  },
  payWrong: (world, plan, told) => pay(world, plan, told, 'wrong'),
  payLate: async (world, plan, told) => {
    await pause(world, told.expiresAt - Date.now() + 200 + plan.eventDelayMs);
    await pay(world, plan, told, 'right');
  },
  payAtTheEdge: async (world, plan, told) => {
    await pause(world, told.expiresAt - Date.now() - 100 + plan.eventDelayMs / 5);
    await pay(world, { ...plan, eventDelayMs: 0 }, told, 'right');
  },
  // The refusal is told late, so that it often comes after the money.
  declinedThenPay: async (world, plan, told) => {
    const paymentId = randomUUID();
    await provider(world, { ...made(plan, told, 'never_captured'), paymentId }, 'failed', { ...plan, repeat: 2 });
    await pause(world, 50);
    await provider(world, { ...made(plan, told, 'right'), paymentId }, 'succeeded', { ...plan, eventDelayMs: 0 });
  },
  cancel,
  cancelAndPay: async (world, plan, told) => {
    await Promise.all([cancel(world, plan, told), pay(world, plan, told, 'right')]);
  },
  providerCancels: async (world, plan, told) => {
    world.model.askedToGiveUp.set(told.reservationId, Date.now());
    await provider(world, made(plan, told, 'never_captured'), 'canceled', plan);
  },
  strayPayment: async (world, plan, told) => {
    const reservationId = plan.n % 2 === 0 ? randomUUID() : `order ${plan.n}`;
    await provider(world, { ...made(plan, told, 'stray'), reservationId }, 'succeeded', plan);
  },
};

function pay(world: World, plan: Visit, told: Told, purpose: Purpose): Promise<void> {
  return provider(world, made(plan, told, purpose), 'succeeded', plan);
}

function made({ n, wrongness }: Visit, told: Told, purpose: Purpose): MadePayment {
  const payment = {
    paymentId: `pay-${n}-${purpose}`,
    reservationId: told.reservationId,
    amount: told.amount,
    currency: told.currency,
    purpose,
  };
  if (purpose !== 'wrong') return payment;
  switch (wrongness) {
    case 'less':
      return { ...payment, amount: told.amount - 1 };
    case 'more':
      return { ...payment, amount: told.amount + 1 };
    case 'nothing':
      return { ...payment, amount: 0 };
    case 'currency':
      return { ...payment, currency: 'USD' };
  }
}

async function provider(
  world: World,
  payment: MadePayment,
  outcome: 'succeeded' | 'failed' | 'canceled',
  { repeat, eventDelayMs }: Pick<Visit, 'repeat' | 'eventDelayMs'>,
): Promise<void> {
  const { purpose: _, ...money } = payment;
  world.model.payments.set(payment.paymentId, payment);
  const { status } = await fetch(new URL('/payments', world.providerUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...money, outcome, repeat, delayMs: Math.round(eventDelayMs) }),
  });
  if (status >= 300) throw new Error(`the stand-in provider answered ${status} to a payment`);
  if (outcome !== 'succeeded' || repeat === 1) return;
  // The same payment under another event's id.
  const events = new URL(`/payments/${payment.paymentId}/events`, world.providerUrl);
  await fetch(events, { method: 'POST' });
}

async function cancel(world: World, plan: Visit, told: Told): Promise<void> {
  if (!world.model.askedToGiveUp.has(told.reservationId)) {
    world.model.askedToGiveUp.set(told.reservationId, Date.now());
  }
  for (let n = 0; n < CANCEL_TRIES && !world.ending.aborted; n += 1) {
    const answer = await giveUp(world, plan, told);
    if (answer && answer.status < 500) break;
    await pause(world, CANCEL_PAUSE_MS);
  }
  for (const againMs of plan.cancelAgainMs) {
    await pause(world, againMs);
    await giveUp(world, plan, told);
  }
}

async function giveUp(world: World, plan: Visit, told: Told): Promise<Answer | undefined> {
  const answer = await world.ask(plan.api, 'DELETE', reservationPath(told));
  const { givenUp } = world.model;
  if (answer?.status === 204 && !givenUp.has(told.reservationId)) givenUp.set(told.reservationId, Date.now());
  return answer;
}

async function look(world: World, plan: Visit, told: Told): Promise<void> {
  const answer = await world.ask(plan.api, 'GET', reservationPath(told));
  if (answer?.status === 200) world.model.shows(told.reservationId, String(answer.body.status));
}

const reservationPath = ({ saleId, reservationId, userId }: Told) =>
  `/sales/${saleId}/reservations/${reservationId}?userId=${userId}`;

async function pause({ ending }: World, ms: number): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { signal: ending }).catch(() => undefined); // rejects only when it is ending
}
