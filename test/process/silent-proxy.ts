/** A proxy in front of a server that can fall silent: connections stay, new ones are accepted, nothing is passed on. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export type SilentProxy = { url: string; silence: () => void; speak: () => void; close: () => Promise<void> };

/** @param target address of the server; `url` is the same through the proxy */
export async function silentProxy(target: string): Promise<SilentProxy> {
  const sockets = new Set<Socket>();
  let silent = false;
  const { hostname, port } = new URL(target);
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      if (silent) from.pause();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    silence: () => {
      silent = true;
      for (const socket of sockets) socket.pause();
    },
    speak: () => {
      silent = false;
      for (const socket of sockets) socket.resume();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
