/** Whose page sent a request: what may change something for a person must not be asked for by another site's. */
import type { FastifyRequest } from 'fastify';

/**
 * Browsers say it by Sec-Fetch-Site; where the address is not a secure one, and older ones everywhere, by Origin.
 * @returns undefined when nothing says it, as without a browser
 */
export function isFromOwnPage({ headers, host }: Pick<FastifyRequest, 'headers' | 'host'>): boolean | undefined {
  const { 'sec-fetch-site': site, origin } = headers;
  if (site !== undefined) return site === 'same-origin';
  return origin === undefined ? undefined : URL.parse(origin)?.host === host;
}
