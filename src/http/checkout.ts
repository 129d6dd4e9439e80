/** POST /sales/{saleId}/reservations/{reservationId}/checkout: a page at the payment provider to pay the hold on. */
import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { openCheckout } from '../operations/checkout.ts';
import type { Api } from './app.ts';
import { ownId } from './reservations.ts';
import { BuyerQuery, CheckoutPage, jsonSchema, refusal, ReservationParams } from './schemas.ts';

type Request = { Params: z.infer<typeof ReservationParams>; Querystring: z.infer<typeof BuyerQuery> };

export function checkoutRoute(app: FastifyInstance, { stores, provider, config, buyersOnly, inTime }: Api): void {
  const checkout = provider?.checkout;
  if (!checkout) return;
  // The ledger is asked before and after it, all within the request's deadline.
  const timeoutMs = Math.min(config.PROVIDER_TIMEOUT_MS, Math.ceil(config.REQUEST_DEADLINE_MS * 0.8));
  app.post<Request>(
    '/sales/:saleId/reservations/:reservationId/checkout',
    {
      ...buyersOnly,
      ...inTime,
      schema: {
        tags: ['buyers'],
        security: [{ storefront: [] }],
        summary: 'A page at the payment provider on which this reservation is paid; the same one when asked again',
        params: jsonSchema(ReservationParams),
        querystring: jsonSchema(BuyerQuery),
        response: { 200: jsonSchema(CheckoutPage), default: refusal },
      },
    },
    async ({ params, query }) => {
      const wanted = { ...params, reservationId: ownId(params), userId: query.userId };
      const page = await openCheckout(stores, checkout, wanted, timeoutMs);
      return { ...page, expiresAt: new Date(page.expiresAt).toISOString() };
    },
  );
}
