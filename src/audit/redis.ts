/** The audit's own way to Redis: one server, a cluster, or the master that Sentinel names. */
import { readFileSync } from 'node:fs';
import { Cluster, Redis } from 'ioredis';
import { reasonOf } from './stores.ts';

/** How to reach Redis; all but the addresses may be left out. */
export type RedisPlace = {
  /** The address, `redis://` or `rediss://`; of a cluster's nodes, or of sentinels, several with spaces between. */
  redisUrl: string;
  /** Default: single. */
  redisMode?: RedisMode;
  sentinelName?: string;
  sentinelPassword?: string;
  /** Certificates in PEM; without them the system's authorities are trusted. */
  tls?: { ca?: Buffer; cert?: Buffer; key?: Buffer };
};
export const REDIS_MODES = ['single', 'cluster', 'sentinel'] as const;
export type RedisMode = (typeof REDIS_MODES)[number];

export const addressesOf = (redisUrl: string) => redisUrl.split(/\s+/).filter((word) => word !== '');

/** Reads the place from settings of the product. @throws {Error} with the reason when one of them is wrong */
export function redisPlaceOf(env: NodeJS.ProcessEnv): RedisPlace {
  const redisUrl = env.REDIS_URL?.trim() ?? '';
  if (redisUrl === '') throw new Error('REDIS_URL is not set: the audit has to know where to look');
  const isAddress = (text: string) => URL.canParse(text) && /^rediss?:$/.test(new URL(text).protocol);
  if (!addressesOf(redisUrl).every(isAddress)) throw new Error('REDIS_URL is no address of such a store');
  const mode = env.REDIS_MODE || 'single';
  const redisMode = REDIS_MODES.find((known) => known === mode);
  if (!redisMode) throw new Error(`REDIS_MODE=${mode} is wrong: it is one of ${REDIS_MODES.join(', ')}`);
  if (redisMode === 'sentinel' && !env.REDIS_SENTINEL_NAME) {
    throw new Error('REDIS_SENTINEL_NAME is not set: the sentinels have to be asked for a master by its name');
  }
  const pem = (part: 'ca' | 'cert' | 'key', setting: string) => {
    const path = env[setting];
    if (!path) return {};
    try {
      return { [part]: readFileSync(path) };
    } catch (error) {
      throw new Error(`${setting}: ${reasonOf(error)}`, { cause: error });
    }
  };
  return {
    ...{ redisUrl, redisMode },
    ...{ sentinelName: env.REDIS_SENTINEL_NAME ?? '', sentinelPassword: env.REDIS_SENTINEL_PASSWORD ?? '' },
    tls: { ...pem('ca', 'REDIS_TLS_CA'), ...pem('cert', 'REDIS_TLS_CERT'), ...pem('key', 'REDIS_TLS_KEY') },
  };
}

/**
 * Makes the client. It connects only when it is told to, and then once: a store that is away is to be told.
 * @param limitMs how long a connection may take
 */
export function clientOf(place: RedisPlace, limitMs: number): Redis | Cluster {
  const { redisMode = 'single', sentinelName = '', sentinelPassword } = place;
  const urls = addressesOf(place.redisUrl).map((text) => new URL(text));
  const tls = urls.every(({ protocol }) => protocol === 'rediss:') ? (place.tls ?? {}) : undefined;
  const shared = {
    ...{ lazyConnect: true, protocol: 2 as const, connectionName: 'flashgate-audit', connectTimeout: limitMs },
    ...{ enableReadyCheck: false, autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 },
    ...(tls && { tls }),
  };
  const once = { enableOfflineQueue: false, retryStrategy: null };
  if (redisMode === 'single') return new Redis(place.redisUrl.trim(), { ...shared, ...once });

  const hosts = (usual: number) =>
    urls.map(({ hostname, port }) => ({ host: hostname.replaceAll(/^\[|\]$/g, ''), port: Number(port) || usual }));
  const [first] = urls;
  const login = first?.password
    ? {
        ...(first.username && { username: decodeURIComponent(first.username) }),
        password: decodeURIComponent(first.password),
      }
    : {};
  if (redisMode === 'cluster') {
    return new Cluster(hosts(6379), {
      ...{ lazyConnect: true, enableReadyCheck: false, clusterRetryStrategy: null },
      dnsLookup: (host, found) => found(null, host), // a certificate is made out to a name
      redisOptions: { ...shared, ...login },
    });
  }
  return new Redis({
    ...{ ...shared, ...once, ...login, db: Number(first?.pathname.slice(1) ?? '') },
    ...{ sentinels: hosts(26_379), name: sentinelName, sentinelPassword: sentinelPassword || undefined },
    ...{ sentinelRetryStrategy: () => null, sentinelCommandTimeout: limitMs },
    ...(tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
  });
}

/** The servers between which the keys are spread. */
export function serversOf(client: Redis | Cluster): Redis[] {
  return client instanceof Cluster ? client.nodes('master') : [client];
}

/** Why a connection failed: of a cluster, what its last node said. */
export function whyAway(error: Error): Error {
  return 'lastNodeError' in error && error.lastNodeError instanceof Error ? error.lastNodeError : error;
}
