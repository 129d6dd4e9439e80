/** A Redis Cluster of a test's own: masters that share the slots, and replicas, all on this machine. */
import { Cluster, Redis } from 'ioredis';
import { expect, vi } from 'vitest';
import { freePort } from '../../scripts/servers/index.js';
import { privateRedis, type Server } from './servers.ts';

const SLOTS = 16_384;
/** After how long a node that does not answer counts as failed. */
const NODE_TIMEOUT_MS = 1500;

export type Node = Server & { url: string; id: string; client: Redis };

export type RedisCluster = {
  masters: Node[];
  /** Of the first master. */
  replicas: Node[];
  /** What REDIS_URL and REDIS_MODE name. */
  env: { REDIS_URL: string; REDIS_MODE: 'cluster' };
  /** A client for the test's own eyes, which waits and asks again as long as it takes. */
  connect: () => Redis;
  /** The node that serves this sale by its own account. */
  ownerOf: (saleId: string) => Promise<Node>;
  slotOf: (saleId: string) => Promise<number>;
  close: () => void;
};

/** Starts three masters, and so many replicas of the first. Resolves when each of them says that all slots are served. */
export async function privateCluster({ replicas = 0 } = {}): Promise<RedisCluster> {
  const nodes = await Promise.all(Array.from({ length: 3 + replicas }, startNode));
  const [first] = nodes;
  if (!first) throw new Error('a cluster has nodes');
  const masters = nodes.slice(0, 3);
  const bound = (n: number) => Math.floor((SLOTS * n) / masters.length);
  for (const [n, { client }] of nodes.entries()) {
    await client.cluster('SET-CONFIG-EPOCH', n + 1);
    if (n < masters.length) await client.call('CLUSTER', 'ADDSLOTSRANGE', bound(n), bound(n + 1) - 1);
    if (n > 0) await client.call('CLUSTER', 'MEET', '127.0.0.1', first.port, await busPort(first));
  }
  const knows = async ({ client }: Node) =>
    String(await client.call('CLUSTER', 'NODES'))
      .split('\n')
      .filter(Boolean).length;
  const joined = { timeout: 30_000, interval: 50 };
  for (const node of nodes) await vi.waitFor(async () => expect(await knows(node)).toBe(nodes.length), joined);
  for (const { client } of nodes.slice(3)) await client.cluster('REPLICATE', first.id);
  for (const node of nodes) {
    await vi.waitFor(async () => expect(await node.client.cluster('INFO')).toContain('cluster_state:ok'), joined);
  }
  const slotOf = async (saleId: string) => {
    const alive = nodes.find(({ client }) => client.status === 'ready');
    return Number(await alive?.client.cluster('KEYSLOT', `{sale:${saleId}}`));
  };
  return {
    masters,
    replicas: nodes.slice(3),
    env: { REDIS_URL: masters.map(({ url }) => url).join(' '), REDIS_MODE: 'cluster' },
    connect: () => {
      const client = new Cluster(nodes.map(({ url }) => url));
      client.on('error', () => undefined); // tests that stop nodes see it in the answers
      return client as unknown as Redis; // it takes the same commands
    },
    slotOf,
    ownerOf: async (saleId) => ownerOf(nodes, await slotOf(saleId)),
    close: () => nodes.forEach(({ client }) => client.disconnect()),
  };
}

async function startNode(): Promise<Node> {
  const bus = await freePort();
  const server = await privateRedis(() => ({
    ...{ 'cluster-enabled': 'yes', 'cluster-port': bus, 'cluster-node-timeout': NODE_TIMEOUT_MS },
    'cluster-require-full-coverage': 'no', // one node's failure is its own sales' only
  }));
  const client = new Redis(server.url);
  client.on('error', () => undefined);
  return Object.assign(server, { client, id: await client.cluster('MYID') });
}

async function busPort({ client }: Node): Promise<string> {
  const [, port = ''] = await client.config('GET', 'cluster-port');
  return port;
}

async function ownerOf(nodes: Node[], slot: number): Promise<Node> {
  for (const node of nodes.filter(({ client }) => client.status === 'ready')) {
    const ranges = await node.client.cluster('SLOTS');
    const range = ranges.find(([from, to]) => from <= slot && slot <= to);
    const owner = nodes.find(({ id }) => id === range?.[2]?.[2]);
    if (owner) return owner;
  }
  throw new Error(`no node serves slot ${slot}`);
}

/** Moves a slot with all its keys, as `redis-cli --cluster reshard` does. `pauseMs`: how long it is half on its way. */
export async function moveSlot({ masters }: RedisCluster, slot: number, to: Node, pauseMs = 0): Promise<void> {
  const from = await ownerOf(masters, slot);
  if (from === to) return;
  await to.client.cluster('SETSLOT', slot, 'IMPORTING', from.id);
  await from.client.cluster('SETSLOT', slot, 'MIGRATING', to.id);
  for (;;) {
    // One by one: for a moment the sale is half here and half there.
    const [key] = await from.client.cluster('GETKEYSINSLOT', slot, 1);
    if (key === undefined) break;
    await from.client.call('MIGRATE', '127.0.0.1', to.port, '', 0, 5000, 'KEYS', key);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  for (const { client } of [to, from, ...masters]) await client.cluster('SETSLOT', slot, 'NODE', to.id);
}
