/** A page at the payment provider on which a buyer pays for a hold, also while its order is still in the queue. */
import type { Order, Wanted } from '../ledger/orders.ts';
import { pageMade, planPage } from '../ledger/checkout.ts';
import { getSale } from '../ledger/sales.ts';
import type { Checkout } from '../provider/port.ts';
import { findReservation, type Found } from './cancel.ts';
import type { Stores } from './stores.ts';

/** Why there is nothing to pay. `code` is the problem's name in the HTTP interface. */
export class NothingToPay extends Error {
  readonly code: 'reservation_not_found' | 'already_paid' | 'reservation_ended';

  constructor(code: NothingToPay['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** `expiresAt` is the reservation's: money that comes after it is given back. Epoch milliseconds. */
export type OpenPage = Pick<Order, 'reservationId' | 'amount' | 'currency' | 'expiresAt'> & { url: string };

/** For how long a question to the provider that was not answered is asked again in the same words. */
const SLACK_MS = 45_000;

/**
 * The page of a reservation; the same whenever it is asked for. The plan is written down first, so that two who ask at
 * once, or one who asks again after a lost answer, ask the provider the same question under the same key.
 * @param timeoutMs for the call to the provider
 * @throws {NothingToPay | ProviderUnavailable | ProviderRefused | GateUnavailable | LedgerUnavailable}
 */
export async function openCheckout(
  stores: Pick<Stores, 'pool' | 'gate'>,
  checkout: Checkout,
  wanted: Wanted,
  timeoutMs: number,
): Promise<OpenPage> {
  const found = payable(await findReservation(stores, wanted), wanted);
  const { reservationId, saleId, userId, qty, amount, currency, expiresAt } = found;
  const page = await planPage(stores.pool, found, checkout.life, SLACK_MS);
  let session = page.session;
  if (!session) {
    const sale = await getSale(stores.pool, saleId);
    const terms = { reservationId, saleId, userId, qty, amount, currency };
    session = await checkout.open({ ...terms, name: sale?.name ?? saleId, expiresAt: page.expiresAt }, timeoutMs);
    await pageMade(stores.pool, reservationId, session);
  }
  return { reservationId, amount, currency, expiresAt, url: session.url };
}

function payable(found: Found | undefined, { reservationId }: Wanted): Found {
  if (!found) throw new NothingToPay('reservation_not_found', `this buyer has no reservation ${reservationId}`);
  const { status, expiresAt } = found;
  if (status === 'PAID') throw new NothingToPay('already_paid', `reservation ${reservationId} is paid`);
  if (status !== 'QUEUED' && status !== 'PENDING_PAYMENT') {
    throw new NothingToPay('reservation_ended', `reservation ${reservationId} is ${status}`);
  }
  if (expiresAt <= Date.now()) {
    throw new NothingToPay('reservation_ended', `the time to pay reservation ${reservationId} is over`);
  }
  return found;
}
