/** A Postgres that dies in the very packet in which it says that a new connection is ready. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPool, LedgerUnavailable, query, transaction, type Pool } from '../../src/ledger/db.ts';
import { freshStores, type Stores } from '../support/stores.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await freshStores();
});
afterAll(() => stores.drop());

/** A message of Postgres' protocol, version 3: its letter, its length, its body. */
function message(letter: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(letter);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

const TOLD = 'terminating connection due to unexpected postmaster exit';
const READY_AND_DEAD = Buffer.concat([
  message('R', Buffer.alloc(4)), // let in
  message('Z', Buffer.from('I')), // ready
  message('E', Buffer.from(`SFATAL\0VFATAL\0C57P01\0M${TOLD}\0\0`)),
]);

/** Dies like that on each of the first connections, and is the real server from then on. */
async function dyingPostgres(deaths: number) {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => client.destroy()); // the client may be the one that hangs up
    connections += 1;
    if (connections <= deaths) {
      client.once('data', () => client.end(READY_AND_DEAD));
      return;
    }
    const { hostname, port } = new URL(stores.databaseUrl);
    const real = connect(Number(port), hostname);
    sockets.add(real);
    real.on('error', () => client.destroy());
    client.pipe(real).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(stores.databaseUrl);
  url.port = String((server.address() as AddressInfo).port);
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  };
  return { url: url.href, close };
}

const ONE = { name: 'one', text: 'select 1 as one' };
const ASKING: Record<string, (pool: Pool) => Promise<unknown>> = {
  'in a transaction': (pool) => transaction(pool, (client) => query(client, ONE)),
  'with a statement by itself': (pool) => query(pool, ONE),
};

test.each(Object.entries(ASKING))('whoever asks %s is told, and the next one is served', async (_, ask) => {
  const postgres = await dyingPostgres(2);
  const unheard: unknown[] = [];
  const note = (error: unknown) => void unheard.push(error);
  process.on('uncaughtException', note);
  const pool = createPool({
    connectionString: postgres.url,
    max: 2,
    connectTimeoutMs: 5000,
    lockTimeoutMs: 5000,
    statementTimeoutMs: 5000,
    idleInTransactionTimeoutMs: 5000,
    onIdleError: () => undefined,
  });
  try {
    await expect(ask(pool)).rejects.toThrow(LedgerUnavailable);
    await expect(ask(pool)).rejects.toThrow(LedgerUnavailable);
    expect(await ask(pool)).toEqual([{ one: 1 }]);
    expect(unheard, 'errors that would have ended the process').toEqual([]);
  } finally {
    process.off('uncaughtException', note);
    await pool.end();
    await postgres.close();
  }
});
