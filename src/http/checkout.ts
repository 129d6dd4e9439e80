/** POST /sales/{saleId}/reservations/{reservationId}/checkout: a page at the payment provider to pay the hold on. */
import type { FastifyInstance } from 'fastify';
import { openCheckout } from '../operations/checkout.ts';
import type { Api } from './app.ts';
import { wantedBy, type ReservationRequest } from './reservations.ts';
import { CheckoutPage, jsonSchema, ReservationParams } from './schemas.ts';

export function checkoutRoute(
  app: FastifyInstance,
  { stores, provider, config, buyers, admission, inTime }: Api,
): void {
  const checkout = provider?.checkout;
  if (!checkout) return;
  // The ledger is asked before and after it, all within the request's deadline.
  const timeoutMs = Math.min(config.PROVIDER_TIMEOUT_MS, Math.ceil(config.REQUEST_DEADLINE_MS * 0.8));
  app.post<ReservationRequest>(
    '/sales/:saleId/reservations/:reservationId/checkout',
    {
      ...buyers.check,
      ...admission.careful,
      ...inTime,
      schema: {
        tags: ['buyers'],
        security: buyers.security,
        operationId: 'openCheckout',
        summary: 'A page at the payment provider on which this reservation is paid; the same one when asked again',
        'x-told': { 200: { description: 'Send the buyer to `url`' } },
        'x-refuses': [
          ...(['reservation_not_found', 'already_paid', 'reservation_ended', 'payment_provider_refused'] as const),
          ...(['payment_provider_unavailable', 'gate_unavailable', 'ledger_unavailable', 'overloaded'] as const),
        ],
        params: jsonSchema(ReservationParams),
        querystring: buyers.query,
        response: { 200: jsonSchema(CheckoutPage) },
      },
    },
    async (request) => {
      const page = await openCheckout(stores, checkout, wantedBy(request, buyers), timeoutMs);
      return { ...page, expiresAt: new Date(page.expiresAt).toISOString() };
    },
  );
}
