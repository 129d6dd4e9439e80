/** GET /sales/{saleId}: public, from memory, cacheable for a second. */
import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { phase, type Sale } from '../domain/sale.ts';
import type { Api } from './app.ts';
import { Problem } from './problem.ts';
import { jsonSchema, PublicSale, SaleParams } from './schemas.ts';

/** A sale's settings as the interface tells them, in the phase of that moment (epoch milliseconds). */
export function presentSale(sale: Sale, now: number) {
  const { amount, currency, openedAt: _, startsAt, endsAt, ...rest } = sale;
  return {
    ...rest,
    state: phase(sale, now),
    startsAt: new Date(startsAt).toISOString(),
    endsAt: new Date(endsAt).toISOString(),
    price: { amount, currency },
  };
}

/**
 * A sale as anybody may see it.
 * @param maxAgeMs of what is left of it
 * @throws {Problem} `sale_not_found`, `gate_not_loaded`; {GateUnavailable | LedgerUnavailable}
 */
export async function publicSale(
  { directory, config }: Pick<Api, 'directory' | 'config'>,
  saleId: string,
  maxAgeMs?: number,
) {
  const sale = await directory.find(saleId);
  if (!sale) throw new Problem('sale_not_found');
  const closed = sale.state === 'closed';
  const figures = closed ? undefined : await directory.figures(saleId, maxAgeMs);
  if (!figures && !closed) throw new Problem('gate_not_loaded');
  const now = figures?.now ?? Date.now();
  return {
    ...presentSale(sale, now),
    // Below zero is the gate's own book-keeping: none left.
    ...(config.HIDE_UNITS_LEFT ? {} : { unitsLeft: Math.max(0, figures?.stock ?? 0) }),
    serverTime: new Date(now).toISOString(),
  };
}

export function saleRoute(app: FastifyInstance, api: Api): void {
  app.get<{ Params: z.infer<typeof SaleParams> }>(
    '/sales/:saleId',
    {
      schema: {
        tags: ['buyers'],
        operationId: 'getSale',
        summary: 'A sale as anybody may see it',
        'x-told': { 200: { description: 'At most a second old', headers: ['Cache-Control'] } },
        'x-refuses': ['sale_not_found', 'gate_not_loaded', 'gate_unavailable', 'ledger_unavailable'],
        params: jsonSchema(SaleParams),
        response: { 200: jsonSchema(PublicSale) },
      },
    },
    async (request, reply) => {
      const sale = await publicSale(api, request.params.saleId);
      return reply.header('cache-control', 'public, max-age=1').send(sale);
    },
  );
}
