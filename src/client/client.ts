/**
 * The client of a storefront in TypeScript: every operation of /openapi.json with its types, by openapi-fetch, and what a
 * careful caller adds by hand. A deadline for the whole call; trying again, since every request is safe to repeat, and no
 * answer is never a no; problem documents as typed errors. docs/client.md shows it.
 */
import createClient, { type Client } from 'openapi-fetch';
import type { components, paths } from './openapi.d.ts';

export type Flashgate = Client<paths>;
export type ProblemDocument = components['schemas']['Problem'];
export type ProblemCode = ProblemDocument['code'];

export type FlashgateOptions = {
  /** `https://host` or `https://host/some/path`. */
  baseUrl: string;
  /** Of SERVICE_TOKEN or ADMIN_TOKEN, or a buyer's own. */
  token?: string | undefined;
  /** For a whole call, with all its attempts and the pauses between them, in milliseconds. */
  deadlineMs?: number;
  /** For one attempt; longer than the API's REQUEST_DEADLINE_MS, by which it answers. In milliseconds. */
  attemptMs?: number;
  /** Attempts at most, so that a crowd of callers is not many crowds. */
  tries?: number;
  /** Instead of the global one, to choose the connections. */
  fetch?: (request: Request, init: { signal: AbortSignal }) => Promise<Response>;
};

/** `client.GET('/sales/{saleId}', …)` and so on: never throws for a refusal, see `error` of its answer, or {@link told}. */
export function flashgate(options: FlashgateOptions): Flashgate {
  const { baseUrl, token } = options;
  return createClient<paths>({
    baseUrl,
    ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
    fetch: patient(options),
  });
}

/** What was refused, and why. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly status: number;
  /** Undefined for an answer that is not flashgate's own: a balancer's, say. */
  readonly code: ProblemCode | undefined;
  readonly problem: ProblemDocument | undefined;
  /** Seconds. */
  readonly retryAfter: number | undefined;

  constructor({ status, headers, url }: Pick<Response, 'status' | 'headers' | 'url'>, body: unknown) {
    const problem = isProblem(body) ? body : undefined;
    const what = problem ? `${problem.code}: ${problem.detail ?? problem.title}` : JSON.stringify(body);
    super(`HTTP ${status} ${what}${url && ` (${url})`}`);
    this.status = status;
    this.code = problem?.code;
    this.problem = problem;
    this.retryAfter = secondsOf(headers);
  }
}

/** There was no answer in time; `cause` is what went wrong last. Of a press: nothing is known, the buyer may have won. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

type Answered = { data?: unknown; error?: unknown; response: Response };

/**
 * What was answered, for whoever wants nothing else: `const sale = await told(client.GET(…))`.
 * @throws {ProblemError} for a refusal
 * @throws {NoAnswer}
 */
export async function told<A extends Answered>(asking: Promise<A>): Promise<Exclude<A['data'], undefined>> {
  const { data, error, response } = await asking;
  if (!response.ok) throw new ProblemError(response, error);
  return data as Exclude<A['data'], undefined>;
}

const isProblem = (body: unknown): body is ProblemDocument =>
  body instanceof Object && 'code' in body && 'title' in body;

const AGAIN = [429, 503];
const AGAIN_OF_GATEWAYS = [502, 504];
const PAUSE_MS = { first: 100, longest: 2000 };

/** Not a no: the same again, after a pause. A 502 of flashgate itself is a no, of the payment provider. */
function decidesNothing({ status, headers }: Response): boolean {
  if (AGAIN.includes(status)) return true;
  return AGAIN_OF_GATEWAYS.includes(status) && headers.get('content-type')?.includes('problem+json') !== true;
}

/** A fetch that goes on until there is an answer that decides something, or the deadline. */
function patient({ deadlineMs = 10_000, attemptMs = 3000, tries = 5, fetch = globalThis.fetch }: FlashgateOptions) {
  const attempt = async (request: Request, ms: number): Promise<Response> => {
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(Math.ceil(ms))]);
    const response = await fetch(request.clone(), { signal });
    // Within the attempt, so that a body that does not come is tried again as well.
    const body = await response.arrayBuffer();
    const { status, statusText, headers } = response;
    return new Response(body.byteLength === 0 ? null : body, { status, statusText, headers });
  };
  return async (request: Request): Promise<Response> => {
    const begun = performance.now();
    for (let tried = 1; ; tried += 1) {
      let response: Response | undefined;
      let failure: unknown;
      try {
        response = await attempt(request, Math.max(1, Math.min(attemptMs, begun + deadlineMs - performance.now())));
      } catch (error) {
        if (request.signal.aborted) throw error; // the caller does not want it any more
        failure = error;
      }
      if (response && !decidesNothing(response)) return response;
      const asked = response && secondsOf(response.headers);
      const pause = asked === undefined ? backOff(tried) : asked * 1000;
      const spent = performance.now() - begun;
      if (tried >= tries || spent + pause >= deadlineMs) {
        if (response) return response;
        const about = `no answer in ${tried} tries and ${Math.round(spent)} ms: ${whyOf(failure)}`;
        throw new NoAnswer(`${request.method} ${request.url}: ${about}`, { cause: failure });
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  };
}

/** With jitter, so that those who were cut off together do not come back together. */
const backOff = (tried: number) => Math.random() * Math.min(PAUSE_MS.longest, PAUSE_MS.first * 2 ** tried);

/** RFC 9110's Retry-After as flashgate has it: whole seconds. */
function secondsOf(headers: Headers): number | undefined {
  const text = headers.get('retry-after') ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** The message that says most: fetch itself only says that it failed. */
function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error) return whyOf(error.cause);
  return error.message || ('code' in error ? String(error.code) : error.name);
}
