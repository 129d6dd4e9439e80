/**
 * The sample shop's calls of flashgate: by the typed client and with the service token, as any storefront's server makes
 * them, of public routes alone. Only the way is shorter: the shop lies in the API's own process, so a request is handed to
 * the app without a socket. A shop of its own leaves `fetch` out and names the API's address.
 */
import type { FastifyInstance } from 'fastify';
import { flashgate, NoAnswer, ProblemError, told, type Flashgate } from '../../client/client.ts';
import type { components } from '../../client/openapi.d.ts';
import type { Config } from '../../config.ts';

export type Sale = components['schemas']['Sale'];
export type Reservation = components['schemas']['Reservation'];

/** Why a call was of no use, as the page is told. `retryAfter` is in seconds. */
export type Refused = { code: string; retryAfter?: number; mayReturn?: boolean; startsAt?: string };

export function clientOf(app: FastifyInstance, config: Config): Flashgate {
  const [token] = config.AUTH_MODE === 'service' ? config.SERVICE_TOKEN : [];
  return flashgate({
    baseUrl: 'http://flashgate.invalid',
    token,
    tries: 1, // the page tries again by itself, and shows that it does
    attemptMs: config.REQUEST_DEADLINE_MS + 1000,
    deadlineMs: config.REQUEST_DEADLINE_MS + 1000,
    fetch: (request) => handedOver(app, request),
  });
}

async function handedOver(app: FastifyInstance, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const payload = await request.text();
  const { statusCode, headers, rawPayload } = await app.inject({
    method: request.method,
    url: pathname + search,
    headers: Object.fromEntries(request.headers),
    ...(payload !== '' && { payload }),
  });
  const told = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
  return new Response(rawPayload.length === 0 ? null : new Uint8Array(rawPayload), {
    status: statusCode,
    headers: told,
  });
}

/**
 * An answer, or why there is none, as a value: the page shows both. Problems that a page cannot cause are thrown on.
 * @throws {ProblemError} of a token or a request that is wrong: a mistake of the shop's
 */
export async function asked<T>(
  asking: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<{ found: Exclude<T, undefined> } | { refused: Refused }> {
  try {
    return { found: await told(asking) };
  } catch (error) {
    if (error instanceof NoAnswer) return { refused: { code: 'no_answer' } };
    if (!(error instanceof ProblemError) || error.code === undefined) throw error;
    if ([400, 401, 403, 500].includes(error.status)) throw error;
    const { code, retryAfter, problem } = error;
    const { mayReturn, startsAt } = (problem ?? {}) as Partial<Refused>;
    const about = { ...(mayReturn !== undefined && { mayReturn }), ...(startsAt !== undefined && { startsAt }) };
    return { refused: { code, ...(retryAfter !== undefined && { retryAfter }), ...about } };
  }
}
