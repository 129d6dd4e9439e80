/**
 * How the sample shop's buyers pay: on the page that the checkout route makes, where the provider has such; otherwise at
 * the stand-in provider, which takes the money at once and reports it by its signed webhook, as any provider does.
 */
import type { Config } from '../../config.ts';
import { asked, type Refused, type Reservation } from './calls.ts';
import type { Visit } from './view.ts';

export type Paying = { payAt: string } | { paid: true } | { refused: Refused };

export async function pay(visit: Visit, reservationId: string, config: Config): Promise<Paying> {
  const { client, saleId, session } = visit;
  const params = { path: { saleId, reservationId }, query: { userId: session.buyer } };
  if (config.PAYMENT_PROVIDER !== 'http') {
    const page = await asked(client.POST('/sales/{saleId}/reservations/{reservationId}/checkout', { params }));
    return 'refused' in page ? page : { payAt: page.found.url };
  }
  const held = await asked(client.GET('/sales/{saleId}/reservations/{reservationId}', { params }));
  if ('refused' in held) return held;
  const { status, amount, currency } = held.found;
  if (status !== 'QUEUED' && status !== 'PENDING_PAYMENT') return { refused: { code: 'reservation_ended' } };
  return atStandIn({ reservationId, amount, currency }, config);
}

/** The payment's id is made from the reservation's, so that pressing twice pays once. */
async function atStandIn(
  { reservationId, amount, currency }: Pick<Reservation, 'reservationId' | 'amount' | 'currency'>,
  { PAYMENT_PROVIDER_URL: url, PAYMENT_PROVIDER_TOKEN: token, PROVIDER_TIMEOUT_MS: timeoutMs }: Config,
): Promise<Paying> {
  if (url === undefined) return { refused: { code: 'payment_provider_refused' } };
  const headers = { 'content-type': 'application/json', ...(token !== '' && { authorization: `Bearer ${token}` }) };
  const body = JSON.stringify({ paymentId: `shop-${reservationId}`, reservationId, amount, currency });
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const answer = await fetch(`${url}/payments`, { method: 'POST', headers, body, signal });
    await answer.arrayBuffer();
    if (answer.ok) return { paid: true };
    return { refused: { code: answer.status < 500 ? 'payment_provider_refused' : 'payment_provider_unavailable' } };
  } catch {
    // It cannot be reached, or not in time: whether it took the money is not known, and asking again is safe.
    return { refused: { code: 'payment_provider_unavailable' } };
  }
}
