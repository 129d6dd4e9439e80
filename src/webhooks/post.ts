/**
 * One call of an endpoint: signed, to an address that is checked in the very look-up that is then connected to, within
 * a time limit, no redirect followed, and no more of the answer read than is kept.
 */
import { lookup, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { Agent, request, type Dispatcher } from 'undici';
import { isPublic, notPublic, whyNot } from '../domain/address.ts';
import { retryAfterMs } from '../domain/webhook.ts';
import type { Claimed } from '../ledger/deliveries.ts';

export type PosterOptions = {
  /** For the whole call: name, connection, answer. */
  timeoutMs: number;
  allowPrivate: boolean;
  /** How names become addresses; tests have a resolver that they can turn against us. */
  resolve?: Resolve;
};
type Resolve = (
  hostname: string,
  options: { all: true; family?: number },
  done: (error: NodeJS.ErrnoException | null, addresses?: LookupAddress[]) => void,
) => void;

/** `status` is null when there was no answer; `answer` is text that a person can read, cut off. */
export type Answer = { status: number | null; answer: string | null; error: string | null; retryAfterMs?: number };

export type Poster = {
  /** Never throws for what the other side does. @param signal ends the call at once */
  post: (delivery: Pick<Claimed, 'eventId' | 'url' | 'secrets' | 'payload'>, signal: AbortSignal) => Promise<Answer>;
  close: () => Promise<void>;
};

/** How much of an answer is kept, in characters, and read for that, in bytes. */
const KEPT = 500;
const READ = 4 * KEPT;

export function createPoster(options: PosterOptions): Poster {
  const { timeoutMs, allowPrivate } = options;
  // As many connections to a host as there are calls under way, which the courier bounds for each endpoint by itself:
  // two endpoints of one host do not wait for each other.
  const agent = new Agent({
    connect: { timeout: timeoutMs, ...(allowPrivate ? {} : { lookup: publicOnly(options.resolve ?? lookup) }) },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  });
  return {
    post: async ({ eventId, url, secrets, payload }, signal) => {
      try {
        // Again, since the setting may have changed; and an address in the URL itself is connected to without a look-up.
        const refused = whyNot(url, allowPrivate);
        if (refused !== undefined) throw new Error(refused);
        const response = await request(url, {
          method: 'POST',
          dispatcher: agent,
          signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
          headers: {
            'content-type': 'application/json',
            'user-agent': 'flashgate',
            ...sign(eventId, payload, secrets, new Date()),
          },
          body: payload,
        });
        return await read(response);
      } catch (error) {
        return { status: null, answer: null, error: printable(reason(error)) };
      }
    },
    close: () => agent.destroy(),
  };
}

/** Standard Webhooks: one header, a signature for each secret, over id, time and body. */
function sign(eventId: string, payload: string, secrets: string[], at: Date): Record<string, string> {
  return {
    'webhook-id': eventId,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(eventId, at, payload)).join(' '),
  };
}

/** A look-up that fails when the name leads anywhere that is not public, so that nothing is connected to. */
function publicOnly(resolve: Resolve): LookupFunction {
  return (hostname, { family, all }, done) => {
    const only = family === 'IPv4' ? 4 : family === 'IPv6' ? 6 : family;
    resolve(hostname, { all: true, ...(only === undefined ? {} : { family: only }) }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error || !addresses || !first) {
        done(error ?? new Error(`${hostname} has no address`), '', 0);
        return;
      }
      const inside = addresses.find(({ address }) => !isPublic(address));
      if (inside) done(new Error(`${hostname}: ${notPublic(inside.address)}`), '', 0);
      else if (all) done(null, addresses);
      else done(null, first.address, first.family);
    });
  };
}

async function read({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<Answer> {
  const answer = await beginning(body);
  const header = [headers['retry-after']].flat()[0];
  const wait = statusCode === 429 || statusCode === 503 ? retryAfterMs(header, Date.now()) : undefined;
  return {
    status: statusCode,
    answer,
    error: statusCode >= 200 && statusCode < 300 ? null : described(statusCode),
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
  };
}

const described = (status: number) =>
  status >= 300 && status < 400 ? `HTTP ${status}: redirects are not followed` : `HTTP ${status}`;

async function beginning(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      if ((size += chunk.length) >= READ) break; // closes the connection
    }
  } catch (error) {
    // The status is what counts, and it is here; the rest is for a person.
    chunks.push(Buffer.from(` … ${reason(error)}`));
  }
  return printable(Buffer.concat(chunks).subarray(0, READ).toString('utf8'));
}

/** The first characters; what cannot be printed, or not be stored, is shown as that. */
const printable = (text: string) => Array.from(text.replaceAll(/\p{C}/gu, '\uFFFD')).slice(0, KEPT).join('');

function reason(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reason).join('; ');
  return error instanceof Error ? error.message || error.name : String(error);
}
