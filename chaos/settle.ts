/** After the faults: waits, for a bounded time, until nothing is left to do; everything that is left must be done by then. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stores } from './ledger.ts';
import type { World } from './world.ts';

export const SETTLE_MS = 90_000;
const LOOK_EVERY_MS = 500;
const PROBE_SALE = 'many';

export type Settled = { afterMs: number; left: string[]; deadLetters: number };

export async function settle(stores: Stores, ending: AbortSignal): Promise<Settled> {
  const start = performance.now();
  const deadLetters = await stores.replayDeadLetters();
  for (;;) {
    const left = await whatIsLeft(stores);
    const afterMs = performance.now() - start;
    if (left.length === 0 || afterMs > SETTLE_MS || ending.aborted) return { afterMs, left, deadLetters };
    await sleep(LOOK_EVERY_MS, undefined, { signal: ending }).catch(() => undefined); // rejects only when it is ending
  }
}

async function whatIsLeft(stores: Stores): Promise<string[]> {
  const [todo, ledger, gate, messages, book] = await Promise.all([
    stores.todo(),
    stores.ledger(),
    stores.gate(),
    stores.messages(),
    stores.payments(),
  ]);
  const left = Object.entries(todo).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : []));
  if (messages > 0) left.push(`${messages} messages`);
  const known = new Set(ledger.payments.map(({ id }) => id));
  const unknown = book.filter(({ status, paymentId }) => status === 'succeeded' && !known.has(paymentId));
  if (unknown.length > 0) left.push(`${unknown.length} payments not reported`);
  for (const { saleId, held, forfeited, unqueued, open } of gate) {
    const paid = ledger.sales.find((sale) => sale.saleId === saleId)?.paid ?? 0;
    if (!open) left.push(`${saleId}: the gate is not open`);
    else if (held !== paid) left.push(`${saleId}: ${held} held, ${paid} paid`);
    if (forfeited > 0) left.push(`${saleId}: ${forfeited} forfeited`);
    if (unqueued > 0) left.push(`${saleId}: ${unqueued} marked`);
  }
  return left;
}

/**
 * One more buyer at each API, who pays at once: proof that it sells again.
 * @returns what they hold; fewer than there are APIs when one did not sell in time
 */
export async function sellOneMore(world: World): Promise<string[]> {
  const sold: string[] = [];
  for (const api of [0, 1] as const) {
    const userId = `last-${api}`;
    world.model.asks({ saleId: PROBE_SALE, userId, qty: 1 });
    for (let tries = 0; tries < 60 && !world.ending.aborted; tries += 1) {
      const answer = await world.ask(api, 'POST', `/sales/${PROBE_SALE}/reserve`, { body: { userId, qty: 1 } });
      if (answer && answer.status < 300) {
        sold.push(await payFor(world, answer.body));
        break;
      }
      await sleep(500);
    }
  }
  return sold;
}

async function payFor(world: World, { reservationId, amount, currency }: Record<string, unknown>): Promise<string> {
  const payment = {
    ...{ paymentId: `pay-last-${String(reservationId)}`, reservationId: String(reservationId) },
    ...{ amount: Number(amount), currency: String(currency) },
  };
  world.model.payments.set(payment.paymentId, { ...payment, purpose: 'right' });
  const { ok, status } = await fetch(new URL('/payments', world.providerUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(payment),
  });
  if (!ok) throw new Error(`the stand-in provider answered ${status} to a payment`);
  return payment.reservationId;
}
