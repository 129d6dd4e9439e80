/** Operations of the document, called by their names with what the document says that they need. */
import { randomUUID } from 'node:crypto';
import type { InjectOptions } from 'fastify';
import type { ProblemCode } from '../../src/http/problem.ts';
import { stripeSignature } from '../support/stripe.ts';
import { asAdmin, asShop, expectProblem, newId, saleSettings, type TestApi } from './api.ts';
import type { Operation } from './conform.ts';

export type Call = { saleId?: string; reservationId?: string; userId?: string } & InjectOptions;
/** Of the second kind there is one only where the payment provider has pages. */
export const OF_BUYERS = ['getReservation', 'cancelReservation', 'reservationEvents'];
export const OF_A_RESERVATION = [...OF_BUYERS, 'openCheckout'];

const payloads = (userId: string): Record<string, object> => ({
  putSale: saleSettings(),
  reserve: { userId },
  refundOrder: { returnUnits: true },
});

/** Calls an operation by its name, with what the document says that it needs. */
export function call({ app, conformity }: TestApi, operationId: string, options: Call = {}) {
  const { saleId = newId(), reservationId = randomUUID(), userId = 'u', ...rest } = options;
  for (const [path, methods] of Object.entries(conformity.document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (operation.operationId !== operationId) continue;
      const query = OF_A_RESERVATION.includes(operationId) ? `?userId=${userId}` : '';
      const payload = payloads(userId)[operationId];
      return app.inject({
        method: method.toUpperCase() as 'GET',
        url: path.replace('{saleId}', saleId).replace('{reservationId}', reservationId) + query,
        headers: path.startsWith('/admin') ? asAdmin : asShop,
        ...(payload && { payload }),
        ...rest,
      });
    }
  }
  throw new Error(`there is no operation ${operationId}`);
}

/** Each of them must be refused with this code. */
export async function refused(
  code: ProblemCode,
  at: TestApi,
  operationIds: string[],
  options: Call = {},
): Promise<void> {
  for (const operationId of operationIds) expectProblem(await call(at, operationId, options), code);
}

export const operations = (at: TestApi) =>
  Object.entries(at.conformity.document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, string, Operation] => [path, method, operation]),
  );

/** An event in the payment provider's own form. */
export function report({ app }: TestApi, event: object, header?: string, more: Record<string, string> = {}) {
  const payload = JSON.stringify(event);
  const headers = {
    'content-type': 'application/json',
    'stripe-signature': header ?? stripeSignature(payload),
    ...more,
  };
  return app.inject({ method: 'POST', url: '/webhooks/stripe', headers, payload });
}
