/**
 * A TCP proxy that holds a process' write back on its way to a store: everything from the first bytes with a certain word
 * in them on, until it is told to let them pass. What a slow network does to the last write of a process that freezes.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export type HoldingProxy = {
  /** The store's address, through the proxy. */
  url: string;
  /** From here on the next write with this word in it is held, and all that follow on its connection. */
  holdBack(word: string, whenHeld: () => void): void;
  /** Lets what is held pass. */
  pass(): void;
  /** What the store has answered on the connection that was held, since then. */
  answered(): string;
  close(): Promise<void>;
};

/** @param target a URL with host and port */
export async function holdingProxy(target: string): Promise<HoldingProxy> {
  const sockets = new Set<Socket>();
  let wanted: { word: string; whenHeld: () => void } | undefined;
  let held: { store: Socket; bytes: Buffer[] } | undefined;
  let passed: Socket | undefined;
  let answers = '';
  const { hostname, port } = new URL(target);
  const server = createServer((client) => {
    const store = connect(Number(port), hostname);
    for (const socket of [client, store]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy()); // which closes it, and the other end with it
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        store.destroy();
      });
    }
    client.on('data', (bytes) => {
      if (held?.store === store) return void held.bytes.push(bytes);
      if (wanted === undefined || !bytes.includes(wanted.word)) return void store.write(bytes);
      const { whenHeld } = wanted;
      wanted = undefined;
      held = { store, bytes: [bytes] };
      whenHeld();
    });
    store.on('data', (bytes) => {
      if (passed === store) answers += bytes.toString('latin1');
      client.write(bytes);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    holdBack: (word, whenHeld) => void (wanted = { word, whenHeld }),
    pass: () => {
      if (!held) throw new Error('nothing is held');
      const { store, bytes } = held;
      held = undefined;
      passed = store;
      for (const part of bytes) store.write(part);
    },
    answered: () => answers,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
