/** A connection that can be made bad: replies withheld, everything cut. Between a client of the product and a real server. */
import { connect, createServer, type Socket } from 'node:net';
import { afterAll } from 'vitest';

export type Line = {
  port: number;
  /** 'pass': as if it were not there. 'mute': requests arrive, replies do not. 'silent': nothing arrives either way. */
  mode: 'pass' | 'mute' | 'silent';
  /** How far away the server is: how much later each request arrives, in milliseconds. */
  farMs: number;
  /** Cuts every connection there is. */
  cut(): void;
  close(): Promise<void>;
};

const open: Line[] = [];
afterAll(async () => {
  await Promise.all(open.splice(0).map((line) => line.close()));
});

/** Listens on a free port of 127.0.0.1 and passes on to `port`. Closed when the test file ends. */
export async function lineTo(port: number): Promise<Line> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const there = connect(port, '127.0.0.1');
    for (const [from, to, modes] of [
      [client, there, ['pass', 'mute']],
      [there, client, ['pass']],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes) => {
        if (!(modes as readonly string[]).includes(line.mode)) return;
        if (line.farMs > 0 && to === there) setTimeout(() => to.write(bytes), line.farMs);
        else to.write(bytes);
      });
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const line: Line = {
    port: (server.address() as { port: number }).port,
    mode: 'pass',
    farMs: 0,
    cut,
    close: () => {
      cut();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  open.push(line);
  return line;
}

/** The same address, through the line. */
export function through(line: Line, url: string): string {
  const other = new URL(url);
  other.hostname = '127.0.0.1';
  other.port = String(line.port);
  return other.href;
}
