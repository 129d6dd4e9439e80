/**
 * The connection to Redis: to one server, to a cluster, or to the master that Sentinel names. Only wiring.ts makes one.
 *
 * The same rules hold for all three. Nothing waits in the client while Redis is away, and nothing is sent twice by it:
 * both are the callers' business. What a cluster's node did not carry out, since it does not serve the key (MOVED, ASK,
 * TRYAGAIN), is sent on, but only a few times, so that it ends within a call's time limit.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import type { Logger } from 'pino';
import { redisAddresses, type Config } from './config.ts';
import type { Client } from './gate/client.ts';

/** A sale whose slot is moving may need three: to the new owner, back, and on by ASK. */
const REDIRECTIONS = 5;
/** A sale's keys that are half on the way to another node are there in a moment, or it takes too long to wait for. */
const TRY_AGAIN_MS = 20;

/** Whatever goes wrong is given this long before a connection counts as lost. */
const patience = ({ GATE_TIMEOUT_MS }: Config) => GATE_TIMEOUT_MS * 4;
const backOff = (attempt: number) => Math.min(50 * attempt, 500);

/** @throws {Error} when a file of a certificate cannot be read */
export function createRedis(config: Config, logger: Logger): Client {
  if (config.REDIS_MODE === 'cluster') return createCluster(config, logger);
  const redis = config.REDIS_MODE === 'sentinel' ? createSentinelled(config) : createSingle(config);
  return tellWhenAway(redis, logger);
}

/** Of every connection to a server, in all three modes. */
function common(config: Config) {
  return {
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: patience(config),
    socketTimeout: patience(config), // a connection that went silent is given up, not waited for
    // A master that was demoted refuses writes: its name may point to the new one by now.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  };
}

function createSingle(config: Config): Redis {
  const tls = tlsOf(config);
  return new Redis(config.REDIS_URL.trim(), {
    ...common(config),
    enableOfflineQueue: false,
    retryStrategy: backOff,
    ...(tls && { tls }),
  });
}

function createSentinelled(config: Config): Redis {
  const tls = tlsOf(config);
  const [first] = redisAddresses(config);
  return new Redis({
    ...common(config),
    ...loginOf(config),
    db: Number(first?.pathname.slice(1) ?? ''),
    sentinels: hostsOf(config, 26_379),
    name: config.REDIS_SENTINEL_NAME,
    sentinelPassword: config.REDIS_SENTINEL_PASSWORD || undefined,
    sentinelCommandTimeout: patience(config),
    enableOfflineQueue: false,
    retryStrategy: backOff,
    ...(tls && { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }),
  });
}

function createCluster(config: Config, logger: Logger): Cluster {
  const tls = tlsOf(config);
  const cluster = new Cluster(hostsOf(config, 6379), {
    enableOfflineQueue: false,
    clusterRetryStrategy: backOff,
    maxRedirections: REDIRECTIONS,
    retryDelayOnTryAgain: TRY_AGAIN_MS,
    // Off: a connection that was lost, or a cluster that is down, is the caller's to know. A node that was lost is
    // forgotten, and found again by asking any other one.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    // As they are named: a certificate is made out to a name.
    dnsLookup: (host, found) => found(null, host),
    redisOptions: { ...common(config), ...loginOf(config), ...(tls && { tls }) },
  });
  connectAtOnce(cluster);
  tellOfNodes(cluster, logger);
  return tellWhenAway(cluster, logger);
}

/**
 * Ends all connections, also one whose handshake is under way. A server that is told of an end before it is told that its
 * certificate is not trusted answers with an alert, which Node.js tells as a second error of the socket. The client
 * listens for the first one only, and an error to which nobody listens ends the process.
 */
export function disconnect(client: Client): void {
  const connections: Partial<Pick<Redis, 'stream'>>[] = client instanceof Cluster ? client.nodes() : [client];
  for (const { stream } of connections) stream?.on('error', () => undefined);
  client.disconnect();
}

function hostsOf(config: Config, usualPort: number): { host: string; port: number }[] {
  return redisAddresses(config).map(({ hostname, port }) => ({
    host: hostname.replaceAll(/^\[|\]$/g, ''), // of an IPv6 address
    port: port === '' ? usualPort : Number(port),
  }));
}

/** User and password of the first address; they are the same on all servers. */
function loginOf(config: Config): { username?: string; password?: string } {
  const [first] = redisAddresses(config);
  if (!first || first.password === '') return {};
  const username = decodeURIComponent(first.username);
  return { ...(username && { username }), password: decodeURIComponent(first.password) };
}

/** @returns undefined without TLS; the system's authorities are trusted unless REDIS_TLS_CA names another */
function tlsOf(config: Config) {
  if (!redisAddresses(config).every(({ protocol }) => protocol === 'rediss:')) return undefined;
  const pem = (part: 'ca' | 'cert' | 'key', setting: 'REDIS_TLS_CA' | 'REDIS_TLS_CERT' | 'REDIS_TLS_KEY') => {
    if (config[setting] === '') return {};
    try {
      return { [part]: readFileSync(config[setting]) };
    } catch (error) {
      throw new Error(`${setting}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  };
  return { ...pem('ca', 'REDIS_TLS_CA'), ...pem('cert', 'REDIS_TLS_CERT'), ...pem('key', 'REDIS_TLS_KEY') };
}

/**
 * The client connects to a node only for its first command, and refuses all others until it is connected. So it is made
 * to connect to every master as soon as it knows of it; a moment later, since the redirection that told of a node is
 * itself to be the first command.
 */
function connectAtOnce(cluster: Cluster): void {
  const connect = () => {
    setImmediate(() => {
      if (cluster.status !== 'ready') return;
      // What fails is told as 'node error'.
      for (const node of cluster.nodes('master')) if (node.status === 'wait') node.connect().catch(() => undefined);
    });
  };
  for (const event of ['ready', 'refresh', '+node']) cluster.on(event, connect);
}

function tellWhenAway<T extends Client>(redis: T, logger: Logger): T {
  let away = false;
  redis.on('error', (error: Error) => {
    if (!away) logger.warn({ err: error }, 'Redis is away: 503 until it is back');
    away = true;
  });
  redis.on('ready', () => {
    if (away) logger.info({}, 'Redis is back');
    away = false;
  });
  return redis;
}

function tellOfNodes(cluster: Cluster, logger: Logger): void {
  const away = new Set<string>();
  cluster.on('node error', (error: Error, node: string) => {
    if (!away.has(node)) logger.warn({ err: error, node }, 'a node of the Redis Cluster is away: 503 for its sales');
    away.add(node);
  });
  cluster.on('+node', (redis: Redis) => {
    const node = `${redis.options.host ?? ''}:${redis.options.port ?? ''}`;
    redis.on('ready', () => {
      if (away.delete(node)) logger.info({ node }, 'the node of the Redis Cluster is back');
    });
  });
}

/** Resolves once Redis is connected, every master of a cluster, or it is clear that it is not: the first call says why. */
export async function connected(client: Client, config: Config): Promise<void> {
  const signal = AbortSignal.timeout(patience(config));
  if (client.status !== 'ready') await once(client, 'ready', { signal }).catch(() => undefined);
  if (!(client instanceof Cluster)) return;
  const all = Promise.allSettled(client.nodes('master').map((node) => node.ping()));
  await Promise.race([all, sleep(patience(config), undefined, { ref: false })]);
}
