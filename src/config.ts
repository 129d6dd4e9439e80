/**
 * Settings: environment only, read once, checked here. A wrong value stops the process with the reason.
 * `.env.example` lists all of them with units and defaults; a test holds the two equal.
 */
import { availableParallelism } from 'node:os';
import { isIP } from 'node:net';
import { z } from 'zod';

const DAY_MS = 86_400_000;
const ms = (fallback: number, max = DAY_MS) => z.coerce.number().int().min(1).max(max).default(fallback);
const count = (fallback: number, max: number) => z.coerce.number().int().min(1).max(max).default(fallback);
/** A limit; 0 is none. */
const upTo = (fallback: number) => z.coerce.number().int().min(0).max(1_000_000).default(fallback);
const port = (fallback: number) => z.coerce.number().int().min(0).max(65_535).default(fallback);
const flag = (fallback: 'true' | 'false') =>
  z
    .enum(['true', 'false'])
    .default(fallback)
    .transform((word) => word === 'true');
const wordsOf = (text: string) => text.split(/\s+/).filter((word) => word !== '');
const words = z.string().default('').transform(wordsOf);

const TokenList = words.refine((list) => list.every((token) => token.length >= 16), {
  error: 'each token needs at least 16 characters (try: openssl rand -hex 24)',
});
/** At least 24 bytes, in whole groups: half a group is a secret that was cut when it was copied. */
const BASE64_SECRET = /^whsec_([A-Za-z0-9+/]{4}){8,}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const SecretList = words.refine((list) => list.every((secret) => BASE64_SECRET.test(secret)), {
  error: 'each secret is whsec_ and at least 24 bytes in base64 (try: echo whsec_$(openssl rand -base64 24))',
});

const isRedisUrl = (text: string) => URL.canParse(text) && /^rediss?:$/.test(new URL(text).protocol);

/** The addresses of REDIS_URL: several of a cluster, or of sentinels. */
export const redisAddresses = ({ REDIS_URL }: Pick<Config, 'REDIS_URL'>): URL[] =>
  wordsOf(REDIS_URL).map((text) => new URL(text));

/** RFC 7518, section 3.2: a key for HS256 has at least as many bits as the hash. */
const KeyList = words.refine((list) => list.every((secret) => Buffer.byteLength(secret) >= 32), {
  error: 'each secret needs at least 32 bytes (try: openssl rand -hex 32)',
});

/** An address, or a network that is not the whole world. */
const isNetwork = (text: string) => {
  const [address = '', length, more] = text.split('/');
  const family = isIP(address);
  if (family === 0 || more !== undefined) return false;
  return length === undefined || (/^[1-9]\d{0,2}$/.test(length) && Number(length) <= (family === 4 ? 32 : 128));
};
const Networks = words.refine((list) => list.every(isNetwork), {
  error: 'addresses and networks such as 10.0.0.7 or 10.0.0.0/8, with spaces between; /0 would believe anybody',
});
const Origins = words.refine((list) => list.every((each) => /^https?:$/.test(originOf(each).protocol)), {
  error: 'origins as a browser sends them, such as https://shop.example, with spaces between',
});
/** The address, if it is no more than an origin. */
function originOf(text: string): { protocol: string } {
  const url = URL.parse(text);
  return url?.origin === text ? url : { protocol: '' };
}

const STRIPE_KEY = /^(sk|rk)_(test|live)_\w{8,}$/;
const StripeKeys = words
  .refine((list) => list.every((key) => STRIPE_KEY.test(key)), {
    error: 'each key begins with sk_test_, sk_live_, rk_test_ or rk_live_ (Stripe, Developers, API keys)',
  })
  .refine((list) => new Set(list.map((key) => key.split('_')[1])).size <= 1, {
    error: 'test keys and live keys are mixed: events and refunds of one mode do not exist in the other',
  });
const StripeSecrets = words.refine((list) => list.every((secret) => /^whsec_\w{8,}$/.test(secret)), {
  error: 'each secret begins with whsec_ (Stripe, Developers, Webhooks, the endpoint)',
});

const Settings = z.object({
  NODE_ENV: z.string().default('development'),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),

  HOST: z.string().default('127.0.0.1'),
  PORT: port(3000),
  API_PROCESSES: count(availableParallelism(), 256),
  METRICS_PORT: z.coerce.number().int().min(0).max(65_535).optional(), // a default would open one for everybody
  AUTH_MODE: z.enum(['service', 'jwt', 'none']).default('service'),
  SERVICE_TOKEN: TokenList,
  JWT_ALGORITHM: z.enum(['HS256', 'RS256', 'PS256', 'ES256', 'EdDSA']).optional(),
  JWT_SECRET: KeyList,
  JWT_JWKS_URL: z.url({ protocol: /^https?$/ }).optional(),
  JWT_AUDIENCE: z.string().optional(),
  JWT_ISSUER: z.string().optional(),
  ADMIN_TOKEN: TokenList,
  WEBHOOK_SECRET: SecretList,
  TRUST_PROXY: Networks,
  CORS_ORIGINS: Origins,
  RATE_LIMIT_WINDOW_MS: ms(10_000),
  RATE_LIMIT_BUYER: upTo(100),
  RATE_LIMIT_ADDRESS: upTo(0),
  MAX_EVENT_LOOP_DELAY_MS: z.coerce.number().int().min(0).max(60_000).default(0),
  HIDE_UNITS_LEFT: flag('false'),
  DOCS_PAGE: flag('true'),
  SHOP_SAMPLE: flag('false'),
  SHOP_SESSION_SECRET: KeyList,
  OPS_ROOM: flag('true'),
  REQUEST_DEADLINE_MS: ms(2000),
  CLIENT_TIMEOUT_MS: ms(30_000),
  KEEP_ALIVE_MS: ms(75_000),
  BALANCER_IDLE_MS: ms(60_000),
  SHUTDOWN_DELAY_MS: z.coerce.number().int().min(0).max(60_000).default(0),
  SHUTDOWN_DEADLINE_MS: ms(15_000),
  SALES_REFRESH_MS: ms(1000),
  EVENT_STREAMS_MAX: count(10_000, 1_000_000),
  EVENT_POLL_MS: ms(250, 60_000),
  EVENT_HEARTBEAT_MS: ms(15_000),

  REDIS_URL: z.string().refine((text) => wordsOf(text).every(isRedisUrl), {
    error: 'each address is redis://host:port or rediss://host:port, with spaces between several',
  }),
  REDIS_MODE: z.enum(['single', 'cluster', 'sentinel']).default('single'),
  REDIS_SENTINEL_NAME: z.string().default(''),
  REDIS_SENTINEL_PASSWORD: z.string().default(''),
  REDIS_TLS_CA: z.string().default(''),
  REDIS_TLS_CERT: z.string().default(''),
  REDIS_TLS_KEY: z.string().default(''),
  GATE_TIMEOUT_MS: ms(500),
  GATE_BATCH: count(256, 1024),
  LATCH_MS: z.coerce.number().int().min(0).max(60_000).default(100),
  LATCH_HOLDERS: count(20_000, 1_000_000),
  GATE_PENDING: count(20_000, 1_000_000),

  SQS_QUEUE_URL: z.url({ protocol: /^https?$/ }),
  SQS_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  AWS_REGION: z.string().min(1).default('us-east-1'),
  QUEUE_TIMEOUT_MS: ms(1000),
  QUEUE_SENDS_IN_FLIGHT: count(8, 100),
  QUEUE_PENDING: count(5000, 1_000_000),
  QUEUE_WAIT_SECONDS: z.coerce.number().int().min(0).max(20).default(5),
  QUEUE_VISIBILITY_SECONDS: count(30, 43_200),

  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  DB_POOL: count(10, 1000),
  DB_CONNECT_TIMEOUT_MS: ms(2000),
  DB_LOCK_TIMEOUT_MS: ms(2000),
  DB_STATEMENT_TIMEOUT_MS: ms(5000),
  DB_IDLE_IN_TRANSACTION_TIMEOUT_MS: ms(5000),

  WORKER_RECEIVERS: count(16, 100),
  WORKER_BATCH: count(160, 1000),

  KEEPER_INTERVAL_MS: ms(1000),
  KEEPER_BATCH: count(500, 2000),
  RECONCILE_INTERVAL_MS: ms(30_000),
  LEASE_TTL_MS: z.coerce.number().int().min(1000).max(600_000).default(30_000),
  LOST_GRACE_MS: ms(60_000),
  UNQUEUED_GRACE_MS: ms(5000),
  REBUILD_DRAIN_MS: ms(10_000),
  PARKED_GRACE_MS: ms(900_000, 30 * DAY_MS),
  PAYMENT_PROVIDER: z.enum(['http', 'stripe']).default('http'),
  PAYMENT_PROVIDER_URL: z.url({ protocol: /^https?$/ }).optional(),
  PAYMENT_PROVIDER_TOKEN: z.string().default(''),
  PROVIDER_TIMEOUT_MS: ms(5000),
  PROVIDER_KEY_LIFETIME_MS: ms(82_800_000),
  PROVIDER_PORT: port(0),
  STRIPE_SECRET_KEY: StripeKeys,
  STRIPE_WEBHOOK_SECRET: StripeSecrets,
  STRIPE_API_BASE: z.url({ protocol: /^https?$/ }).optional(),
  CHECKOUT_SUCCESS_URL: z.url({ protocol: /^https?$/ }).optional(),
  CHECKOUT_CANCEL_URL: z.url({ protocol: /^https?$/ }).optional(),

  WEBHOOKS_ALLOW_PRIVATE: flag('false'),
  WEBHOOKS_TIMEOUT_MS: ms(15_000, 60_000),
  WEBHOOKS_IN_FLIGHT: count(4, 100),
  WEBHOOKS_RETENTION_MS: ms(30 * DAY_MS, 366 * DAY_MS),
  WEBHOOKS_ROTATION_MS: ms(DAY_MS, 30 * DAY_MS),
});
export type Config = z.infer<typeof Settings>;

/** The names of all settings, for `.env.example` and its test. */
export const settingNames = Object.keys(Settings.shape);

type Relation = { holds: (c: Config) => boolean; reason: string };

/** What the settings of the connection to Redis have to do with each other. */
const redisRelations: Relation[] = [
  {
    holds: (c) => c.REDIS_MODE !== 'single' || redisAddresses(c).length === 1,
    reason: 'REDIS_URL names several servers: set REDIS_MODE=cluster or REDIS_MODE=sentinel, or name one',
  },
  {
    holds: (c) => new Set(redisAddresses(c).map(({ protocol }) => protocol)).size === 1,
    reason: 'the addresses of REDIS_URL must all begin with redis:// or all with rediss://',
  },
  {
    holds: (c) => c.REDIS_MODE !== 'cluster' || redisAddresses(c).every(({ pathname }) => /^\/?0?$/.test(pathname)),
    reason: 'REDIS_URL names a database, and a Redis Cluster (REDIS_MODE=cluster) has none but 0',
  },
  {
    holds: (c) => (c.REDIS_MODE === 'sentinel') === (c.REDIS_SENTINEL_NAME !== ''),
    reason: 'REDIS_SENTINEL_NAME, the name under which the sentinels know the master, goes with REDIS_MODE=sentinel',
  },
  {
    holds: (c) => c.REDIS_URL.includes('rediss:') || c.REDIS_TLS_CA + c.REDIS_TLS_CERT + c.REDIS_TLS_KEY === '',
    reason: 'REDIS_TLS_CA, REDIS_TLS_CERT and REDIS_TLS_KEY are for addresses in REDIS_URL that begin with rediss://',
  },
  {
    holds: (c) => (c.REDIS_TLS_CERT === '') === (c.REDIS_TLS_KEY === ''),
    reason: 'REDIS_TLS_CERT and REDIS_TLS_KEY go together',
  },
];

/** Relations between settings that no single value shows. */
const relations: Relation[] = [
  ...redisRelations,
  {
    holds: (c) => c.AUTH_MODE !== 'none' || c.NODE_ENV !== 'production',
    reason: 'AUTH_MODE=none lets anybody reserve for anybody: it is refused when NODE_ENV=production',
  },
  {
    holds: (c) =>
      c.AUTH_MODE !== 'jwt' || [c.JWT_ALGORITHM, c.JWT_AUDIENCE, c.JWT_ISSUER].every((value) => value !== undefined),
    reason:
      'AUTH_MODE=jwt needs JWT_ALGORITHM, JWT_AUDIENCE and JWT_ISSUER: without them a token made for something else would open this',
  },
  {
    holds: (c) => c.AUTH_MODE !== 'jwt' || c.JWT_ALGORITHM !== 'HS256' || c.JWT_SECRET.length > 0,
    reason: 'JWT_ALGORITHM=HS256 needs JWT_SECRET, which the issuer of the tokens has too',
  },
  {
    holds: (c) =>
      c.AUTH_MODE !== 'jwt' ||
      c.JWT_ALGORITHM === undefined ||
      (c.JWT_JWKS_URL !== undefined) !== (c.JWT_ALGORITHM === 'HS256'),
    reason:
      'JWT_JWKS_URL has public keys: every JWT_ALGORITHM but HS256 needs it, and HS256, whose keys are secrets, must not have it',
  },
  {
    holds: (c) => c.AUTH_MODE !== 'jwt' || c.JWT_SECRET.length === 0 || c.JWT_ALGORITHM === 'HS256',
    reason: 'JWT_SECRET is for JWT_ALGORITHM=HS256 alone',
  },
  {
    holds: (c) => c.NODE_ENV !== 'production' || c.JWT_JWKS_URL?.startsWith('http:') !== true,
    reason:
      'JWT_JWKS_URL must be https when NODE_ENV=production: whoever can change the keys on their way can be any buyer',
  },
  {
    holds: (c) => c.AUTH_MODE !== 'service' || c.RATE_LIMIT_ADDRESS === 0,
    reason:
      'RATE_LIMIT_ADDRESS is for buyers who come by themselves: with AUTH_MODE=service every request comes from the storefront’s own servers',
  },
  {
    holds: (c) => c.CLIENT_TIMEOUT_MS > c.REQUEST_DEADLINE_MS,
    reason:
      'CLIENT_TIMEOUT_MS must be longer than REQUEST_DEADLINE_MS, or a client that waits for its answer is taken for one that does not read',
  },
  {
    holds: (c) =>
      c.PAYMENT_PROVIDER !== 'stripe' ||
      (c.STRIPE_SECRET_KEY.length > 0 && c.CHECKOUT_SUCCESS_URL !== undefined && c.CHECKOUT_CANCEL_URL !== undefined),
    reason: 'PAYMENT_PROVIDER=stripe needs STRIPE_SECRET_KEY, CHECKOUT_SUCCESS_URL and CHECKOUT_CANCEL_URL',
  },
  {
    holds: (c) => c.PAYMENT_PROVIDER !== 'stripe' || c.PAYMENT_PROVIDER_URL === undefined,
    reason: 'PAYMENT_PROVIDER_URL is of PAYMENT_PROVIDER=http: with stripe, refunds go to Stripe',
  },
  {
    holds: (c) => !c.SHOP_SAMPLE || c.SHOP_SESSION_SECRET.length > 0,
    reason: 'SHOP_SAMPLE needs SHOP_SESSION_SECRET, by which it signs its cookies (try: openssl rand -hex 32)',
  },
  {
    holds: (c) => !c.SHOP_SAMPLE || c.AUTH_MODE !== 'jwt',
    reason:
      'SHOP_SAMPLE vouches for its guests with SERVICE_TOKEN: with AUTH_MODE=jwt there is nobody to give them tokens',
  },
  {
    holds: (c) => !c.SHOP_SAMPLE || c.AUTH_MODE !== 'service' || c.SERVICE_TOKEN.length > 0,
    reason: 'SHOP_SAMPLE needs SERVICE_TOKEN, with which it calls the buyers’ routes',
  },
  {
    holds: (c) => c.KEEP_ALIVE_MS > c.BALANCER_IDLE_MS,
    reason:
      'KEEP_ALIVE_MS must be longer than the balancer’s idle time (BALANCER_IDLE_MS), or the balancer sends requests into connections that are being closed',
  },
  {
    holds: (c) => c.EVENT_HEARTBEAT_MS < c.BALANCER_IDLE_MS,
    reason:
      'EVENT_HEARTBEAT_MS must be shorter than BALANCER_IDLE_MS, or the balancer takes an event stream for a connection that nobody uses',
  },
  {
    holds: (c) => c.GATE_TIMEOUT_MS < c.REQUEST_DEADLINE_MS && c.QUEUE_TIMEOUT_MS < c.REQUEST_DEADLINE_MS,
    reason: 'GATE_TIMEOUT_MS and QUEUE_TIMEOUT_MS must be shorter than REQUEST_DEADLINE_MS',
  },
  {
    holds: (c) => c.UNQUEUED_GRACE_MS > c.REQUEST_DEADLINE_MS,
    reason:
      'UNQUEUED_GRACE_MS must be longer than REQUEST_DEADLINE_MS: until then the request itself may still send its hold',
  },
  {
    holds: (c) => c.LEASE_TTL_MS > 6 * c.GATE_TIMEOUT_MS,
    reason:
      'LEASE_TTL_MS must be longer than six times GATE_TIMEOUT_MS: two renewals must be able to fail before a lease is lost',
  },
  {
    holds: (c) => c.LOST_GRACE_MS > c.UNQUEUED_GRACE_MS,
    reason: 'LOST_GRACE_MS must be longer than UNQUEUED_GRACE_MS: a hold is not lost while it may still be sent',
  },
  {
    holds: (c) => c.QUEUE_VISIBILITY_SECONDS * 1000 > c.DB_STATEMENT_TIMEOUT_MS + c.DB_LOCK_TIMEOUT_MS,
    reason:
      'QUEUE_VISIBILITY_SECONDS must be longer than DB_STATEMENT_TIMEOUT_MS and DB_LOCK_TIMEOUT_MS together, or a message comes again while it is still being recorded',
  },
  {
    holds: (c) => c.WORKER_BATCH <= 10 * c.WORKER_RECEIVERS,
    reason:
      'WORKER_BATCH must be no more than ten times WORKER_RECEIVERS: each has ten messages in hand at most, so no transaction would ever have so many orders',
  },
  {
    holds: (c) => c.SHUTDOWN_DEADLINE_MS > c.SHUTDOWN_DELAY_MS + c.REQUEST_DEADLINE_MS,
    reason: 'SHUTDOWN_DEADLINE_MS must be longer than SHUTDOWN_DELAY_MS and REQUEST_DEADLINE_MS together',
  },
  {
    holds: (c) => c.SHUTDOWN_DEADLINE_MS > c.QUEUE_WAIT_SECONDS * 1000,
    reason: 'SHUTDOWN_DEADLINE_MS must be longer than QUEUE_WAIT_SECONDS: a pending receive is waited for',
  },
];

/**
 * Reads and checks the settings. An empty value counts as not set.
 * @throws {Error} with one line per wrong setting
 */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value?.trim() !== ''));
  const parsed = Settings.safeParse(given);
  if (!parsed.success) {
    const lines = parsed.error.issues.map(({ path, message }) => {
      const name = String(path[0]);
      return `  ${name}: ${given[name] === undefined ? 'is not set' : message}`;
    });
    throw new Error(`Settings that cannot be used (.env.example explains each):\n${[...new Set(lines)].join('\n')}`);
  }
  const broken = relations.filter(({ holds }) => !holds(parsed.data)).map(({ reason }) => `  ${reason}`);
  if (broken.length > 0) throw new Error(`Settings that do not fit together:\n${broken.join('\n')}`);
  return parsed.data;
}
