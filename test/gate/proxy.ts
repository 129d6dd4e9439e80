/** A TCP proxy before Redis that loses replies, or connections, when it is told to. */
import { createServer, connect, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';

export type Proxy = {
  url: string;
  /** Lets the next request through that has `word` in it, and cuts the connection instead of handing its reply on. */
  dropReplyTo(word: string): void;
  /** Cuts every connection, and every new one until `mend`. */
  cut(): void;
  mend(): void;
  /** Replies that were dropped. */
  readonly dropped: number;
  close(): Promise<void>;
};

/** @param target a redis:// address */
export async function startProxy(target: string): Promise<Proxy> {
  const { hostname, port, pathname } = new URL(target);
  const sockets = new Set<Socket>();
  let word: string | undefined;
  let broken = false;
  let dropped = 0;
  const server = createServer((client) => {
    if (broken) return void client.destroy();
    const redis = connect(Number(port), hostname);
    let dropping = false;
    for (const socket of [client, redis]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy()); // the other end is told by close
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        redis.destroy();
      });
    }
    client.on('data', (data) => {
      if (word !== undefined && data.includes(word)) {
        word = undefined;
        dropping = true;
      }
      redis.write(data);
    });
    redis.on('data', (data) => {
      if (!dropping) return void client.write(data);
      dropped += 1;
      client.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cutAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`,
    dropReplyTo: (next) => void (word = next),
    cut: () => {
      broken = true;
      cutAll();
    },
    mend: () => void (broken = false),
    get dropped() {
      return dropped;
    },
    close: async () => {
      cutAll();
      server.close();
      await once(server, 'close');
    },
  };
}
