/**
 * Who is let in to what costs something: not those who press too often, and nobody while this process is behind.
 *
 * The latch's refusals do not come here, nor those who wait for another's look. They are the cheapest answer that there is, cheaper than counting whom they are
 * given to, and a 429 or a 503 in their place would only make the same buyer come back (ARCHITECTURE.md has figures).
 */
import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyRequest, RouteShorthandOptions } from 'fastify';
import type { Config } from '../config.ts';
import { watchLateness } from './lateness.ts';
import { Problem } from './problem.ts';

export type Admission = {
  /** Whether this process answers so late that a buyer is better off elsewhere. Costs nothing. */
  late: () => boolean;
  /** Counts a press. Undefined when nothing is limited. @throws {Problem} `rate_limited` */
  press: ((request: FastifyRequest) => Promise<void>) | undefined;
  /** For the routes of a buyer's reservations. */
  careful: Pick<RouteShorthandOptions, 'preHandler'>;
};

/** Buyers, and addresses, of whom a count is kept; the one not heard of for longest is forgotten. */
const COUNTED = 50_000;

/** @param buyerOf who acts in a request that its schema and its check have let through */
export async function admission(
  app: FastifyInstance,
  config: Config,
  buyerOf: (request: FastifyRequest) => string,
): Promise<Admission> {
  const { lateMs, stop } = watchLateness();
  app.addHook('onClose', (_app, done) => {
    stop();
    done();
  });
  // Its hook is not used: it would be on the way of every refusal.
  await app.register(rateLimit, { global: false, timeWindow: config.RATE_LIMIT_WINDOW_MS });
  const { MAX_EVENT_LOOP_DELAY_MS: most, RATE_LIMIT_BUYER: perBuyer, RATE_LIMIT_ADDRESS: perAddress } = config;
  const late = () => most > 0 && lateMs() > most;
  const byBuyer = () => counter(app, perBuyer, buyerOf);
  const presses = [...counter(app, perAddress), ...byBuyer()];
  // Where buyers come by themselves, what they ask for is counted too, apart; a storefront's server is its own guard.
  const asked = config.AUTH_MODE === 'jwt' ? byBuyer() : [];
  return {
    late,
    press: presses.length === 0 ? undefined : (request) => countAll(presses, request),
    careful: {
      preHandler: async (request) => {
        if (late()) throw new Problem('overloaded');
        await countAll(asked, request);
      },
    },
  };
}

/** Counts requests by address. @returns a function that throws {@link Problem} `rate_limited` for one too many */
export function limitByAddress(app: FastifyInstance, max: number, windowMs: number) {
  const options = { max, timeWindow: windowMs, cache: COUNTED };
  const count = app.createRateLimit(options);
  return (request: FastifyRequest): Promise<void> => countAll([count], request);
}

type Counter = ReturnType<FastifyInstance['createRateLimit']>;

/** @param keyOf by whom; by address if it is left out, of IPv6 by the /64. @returns none for a limit of 0 */
function counter(app: FastifyInstance, max: number, keyOf?: (request: FastifyRequest) => string): Counter[] {
  if (max === 0) return [];
  const options = { max, cache: COUNTED, ...(keyOf && { keyGenerator: keyOf }) };
  return [app.createRateLimit(options)];
}

/**
 * A window begins with its first press and is not made longer by those that are too many: whoever goes on pressing is let
 * through again when it is over, and finds their hold.
 */
async function countAll(counters: Counter[], request: FastifyRequest): Promise<void> {
  for (const count of counters) {
    const counted = await count(request);
    if (counted.isAllowed || !counted.isExceeded) continue;
    const seconds = String(counted.ttlInSeconds);
    throw new Problem(
      'rate_limited',
      undefined,
      {},
      {
        'retry-after': seconds,
        // draft-ietf-httpapi-ratelimit-headers-06: the last one with a field for each.
        'ratelimit-limit': String(counted.max),
        'ratelimit-remaining': '0',
        'ratelimit-reset': seconds,
      },
    );
  }
}
