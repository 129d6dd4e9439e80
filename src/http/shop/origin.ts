/** Whether a request that changes something was sent by the shop's own page: another site must not press for a buyer. */
import type { FastifyRequest } from 'fastify';
import { Problem } from '../problem.ts';

/**
 * Every present browser says with Sec-Fetch-Site where a request comes from; older ones with Origin.
 * @throws {Problem} `forbidden`
 */
export function fromOwnPage({ headers, host }: FastifyRequest): void {
  const { 'sec-fetch-site': site, origin } = headers;
  const own = site === undefined ? origin !== undefined && URL.parse(origin)?.host === host : site === 'same-origin';
  if (!own) throw new Problem('forbidden', 'this is for the shop’s own page');
}
