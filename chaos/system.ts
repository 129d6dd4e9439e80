/**
 * The whole system as separate processes, each way between a process and a store through a proxy of its own: two APIs,
 * two workers, two keepers; Postgres, Redis, the queue; the stand-in provider, in this process. All of it can be broken.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import {
  createQueues,
  freePort,
  startPostgres,
  startQueue,
  startRedis,
  type Server,
} from '../scripts/servers/index.js';
import { startServices, type Services } from '../scripts/services.js';
import { migrate } from '../src/ledger/migrate.ts';
import { startProvider, type Provider } from '../src/provider/standin.ts';
import { Member } from './member.ts';
import { Proxy } from './proxy.ts';
import { MEMBERS, STORES, type MemberName, type StoreName } from './script.ts';
import { SECRETS, SETTINGS } from './settings.ts';

const QUEUE = 'flashgate-orders';
const VISIBILITY_SECONDS = Number(SETTINGS.QUEUE_VISIBILITY_SECONDS);

export type SystemOptions = {
  /** The folder with the product's `src/` and `lua/`. */
  product: string;
  say: (line: string) => void;
  /** Settings that differ, for a run with a preference. */
  env?: Record<string, string> | undefined;
};

export class System {
  readonly members = new Map<MemberName, Member>();
  readonly proxies = new Map<string, Proxy>();
  redis!: Server & { url: string };
  postgres!: Server & { url: string };
  queue!: Server & { env: Record<string, string> };
  queueUrl = '';
  provider!: Provider;
  folder = '';
  #services!: Services;
  #options: SystemOptions;
  /** What is to be undone, in the order in which it was done. */
  #undo: (() => Promise<unknown>)[] = [];

  private constructor(options: SystemOptions) {
    this.#options = options;
  }

  /** @throws with everything that was started ended again */
  static async start(options: SystemOptions): Promise<System> {
    const system = new System(options);
    try {
      await system.#start();
      return system;
    } catch (error) {
      await system.stop();
      throw error;
    }
  }

  /** Where the buyers find an API. */
  apiUrl(name: MemberName): string {
    return `http://127.0.0.1:${this.member(name).port}`;
  }

  member(name: MemberName): Member {
    const member = this.members.get(name);
    if (!member) throw new Error(`there is no process ${name}`);
    return member;
  }

  /** Redis' log of writes: all that it knows after a restart. */
  get redisFiles(): string {
    return join(this.folder, 'redis', 'redis-data', 'appendonlydir');
  }

  /** The way from a process to a store, by its name in the script: `worker-1 redis`. */
  way(name: string): Proxy {
    const proxy = this.proxies.get(name);
    if (!proxy) throw new Error(`there is no way ${name}`);
    return proxy;
  }

  /** Kills a server and waits until it is gone. */
  async killServer(name: StoreName, signal: NodeJS.Signals): Promise<void> {
    const server = this[name];
    const gone = server.exited;
    server.kill(signal);
    await gone;
  }

  async restartRedis(): Promise<void> {
    await this.redis.restart();
    await this.#tellRedis();
  }

  async restartQueue(): Promise<void> {
    await this.queue.restart();
    await this.#createQueues();
  }

  /** Ends everything, the last first. Nothing is left running, whatever state it was in. */
  async stop(): Promise<void> {
    for (const undo of this.#undo.splice(0).reverse()) await undo();
  }

  async #start(): Promise<void> {
    const { say } = this.#options;
    this.#services = await watcher();
    this.#undo.push(() => this.#services.stop());
    this.folder = this.#services.folder;
    const started = await Promise.allSettled([
      startPostgres({ folder: join(this.folder, 'postgres') }).then((server) => (this.postgres = this.#ends(server))),
      startRedis({ folder: join(this.folder, 'redis'), say }).then((server) => (this.redis = this.#ends(server))),
      startQueue({ folder: join(this.folder, 'queue') }).then((server) => (this.queue = this.#ends(server))),
    ]);
    for (const result of started) if (result.status === 'rejected') throw result.reason;
    await Promise.all([this.#tellRedis(), this.#createQueues(), migrate(this.postgres.url)]);
    const ports = new Map(await Promise.all(MEMBERS.map(async (name) => [name, await freePort()] as const)));
    await this.#startProvider(ports);
    for (const name of MEMBERS) await this.#startMember(name, ports.get(name) ?? 0);
  }

  async #startMember(name: MemberName, port: number): Promise<void> {
    for (const store of STORES) this.proxies.set(`${name} ${store}`, await this.#proxy(this[store].port));
    const member = new Member({
      name,
      port,
      product: this.#options.product,
      logFile: join(this.folder, 'logs', `${name}.log`),
      env: this.#env(name, port),
      guard: (pid, marker) => this.#services.guard(pid, marker),
    });
    this.members.set(name, member);
    this.#undo.push(() => member.end());
    member.start();
  }

  #env(name: MemberName, port: number): Record<string, string> {
    const through = (store: StoreName, url: string) => {
      const address = new URL(url);
      address.port = String(this.way(`${name} ${store}`).port);
      return address.href;
    };
    return {
      ...{ PATH: process.env.PATH ?? '', ...this.queue.env, ...SETTINGS, ...SECRETS, ...this.#options.env },
      PORT: String(port),
      REDIS_URL: through('redis', this.redis.url),
      DATABASE_URL: through('postgres', this.postgres.url),
      SQS_QUEUE_URL: through('queue', this.queueUrl),
      SQS_ENDPOINT: through('queue', this.queue.env.SQS_ENDPOINT ?? ''),
      PAYMENT_PROVIDER_URL: this.provider.url,
    };
  }

  /** Its events go to whichever API takes the connection, and are sent until one has taken them. */
  async #startProvider(ports: Map<MemberName, number>): Promise<void> {
    const apis = await this.#proxy(ports.get('api-1') ?? 0, ports.get('api-2') ?? 0);
    this.provider = await startProvider({
      webhookUrl: `http://127.0.0.1:${apis.port}/webhooks/payments`,
      webhookSecret: SECRETS.WEBHOOK_SECRET,
      logLevel: 'silent',
      delivery: { attempts: 10_000, timeoutMs: 2500, concurrency: 16, backoffMs: 100 },
    });
    this.#undo.push(() => this.provider.close());
  }

  async #proxy(...targets: number[]): Promise<Proxy> {
    const proxy = await Proxy.start(...targets);
    this.#undo.push(() => proxy.close());
    return proxy;
  }

  #ends<T extends Server>(server: T): T {
    this.#undo.push(() => server.stop());
    return server;
  }

  async #createQueues(): Promise<void> {
    const options = { env: this.queue.env, name: QUEUE, visibilitySeconds: VISIBILITY_SECONDS };
    this.queueUrl = (await createQueues(options)).queueUrl;
  }

  /** What Redis has answered it has written: only then is a Redis that was killed one that forgot nothing. */
  async #tellRedis(): Promise<void> {
    const client = new Redis(this.redis.url, { maxRetriesPerRequest: 3 });
    await client.config('SET', 'appendfsync', 'always').finally(() => client.disconnect());
  }
}

/**
 * A process that ends all that is noted in its folder when this one is gone, however it went. It has no servers of its
 * own to start: those of this run are to be killed and wiped.
 */
async function watcher(): Promise<Services> {
  const none = { DATABASE_URL: 'postgres://none', REDIS_URL: 'redis://none', SQS_QUEUE_URL: 'http://none' };
  const before = { ...process.env };
  Object.assign(process.env, none);
  try {
    const services = await startServices({ name: 'chaos', say: () => undefined });
    mkdirSync(join(services.folder, 'logs'), { recursive: true });
    return services;
  } finally {
    for (const name of Object.keys(none)) {
      if (before[name] === undefined) Reflect.deleteProperty(process.env, name);
      else process.env[name] = before[name];
    }
  }
}
