/** The client of the gate: one Redis (also the one that Sentinel names), or a Redis Cluster. Both take the same commands. */
import { Cluster, type Redis } from 'ioredis';
import { GateUnavailable } from './within.ts';

export type Client = Redis | Cluster;

/**
 * Calls back whenever the next reply may come from another server than the last one. A cluster's client follows a moved
 * slot without losing a connection; that it asks anew who serves what (`refresh`) is what tells of it.
 */
export function onOtherServer(client: Client, callBack: () => void): void {
  const events = client instanceof Cluster ? ['-node', '+node', 'refresh', 'close'] : ['close'];
  for (const event of events) client.on(event, callBack);
}

const ALL_SLOTS = 16_384;

/**
 * Asks every server that takes writes whether it can be trusted with a gate.
 * @throws {GateUnavailable} that says why not: a replica, one that evicts keys when memory is short, or a cluster that
 *   does not serve all its slots; otherwise the client's own errors
 */
export async function checkServers(client: Client): Promise<void> {
  if (!(client instanceof Cluster)) return checkServer(client, 'Redis');
  const masters = client.nodes('master');
  const [first] = masters;
  if (!first) throw new GateUnavailable('no node of the Redis Cluster can be reached');
  const state = await first.cluster('INFO');
  const served = Number(/cluster_slots_ok:(\d+)/.exec(state)?.[1]);
  if (!state.includes('cluster_state:ok') || served < ALL_SLOTS) {
    throw new GateUnavailable(`the Redis Cluster serves ${served} of its ${ALL_SLOTS} slots: see cluster info`);
  }
  await Promise.all(
    masters.map((node) => checkServer(node, `Redis at ${node.options.host ?? ''}:${node.options.port ?? ''}`)),
  );
}

async function checkServer(server: Redis, name: string): Promise<void> {
  const [memory, replication] = await Promise.all([server.info('memory'), server.info('replication')]);
  const [, policy] = /maxmemory_policy:(\S+)/.exec(memory) ?? [];
  if (policy !== 'noeviction') {
    throw new GateUnavailable(
      `${name} evicts keys when memory is short (maxmemory-policy ${policy ?? 'unknown'}) and would lose holds: set noeviction`,
    );
  }
  if (/role:slave/.test(replication)) throw new GateUnavailable(`${name} is a replica and refuses writes`);
}
