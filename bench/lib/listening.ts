/**
 * Listeners to one event stream, as a process of their own: connections that are opened a few at a time, of which each
 * notes when it hears an event. What is measured is the server; nobody here does more than look for the event's end.
 */
import { connect, type Socket } from 'node:net';
import { ready } from './child.ts';
import type { ListenJob, Listened } from './listeners.ts';

const HOST = '127.0.0.1';
const OPENED_AT_ONCE = 100;
const EVENT = Buffer.from('\nid: ');

let sockets: Socket[] = [];
/** Milliseconds of the epoch at which each event was heard, and by how many listeners so far. */
let heardAt: number[] = [];
let lost = 0;

function open({ port, path }: ListenJob): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, HOST);
    let begun = false;
    socket.on('data', (chunk: Buffer) => {
      if (!chunk.includes(EVENT)) return;
      if (begun) heardAt.push(performance.timeOrigin + performance.now());
      else resolve(socket); // the first event: what was when it came
      begun = true;
    });
    socket.once('error', reject);
    socket.once('close', () => {
      if (sockets.includes(socket)) lost += 1;
    });
    socket.write(`GET ${path} HTTP/1.1\r\nhost: ${HOST}\r\n\r\n`);
  });
}

async function listen(job: ListenJob): Promise<void> {
  for (let n = 0; n < job.listeners; n += OPENED_AT_ONCE) {
    const some = Array.from({ length: Math.min(OPENED_AT_ONCE, job.listeners - n) }, () => open(job));
    sockets.push(...(await Promise.all(some)));
  }
}

function leave(): void {
  const all = sockets;
  sockets = [];
  for (const socket of all) socket.destroy();
}

function take(): Listened {
  const heard = { heardAt: heardAt.toSorted((a, b) => a - b), lost };
  heardAt = [];
  return heard;
}

process.on('message', (message: ListenJob | { take: true } | { leave: true }) => {
  if ('take' in message) process.send?.(take());
  else if ('leave' in message) {
    leave();
    process.send?.({ left: true });
  } else {
    listen(message).then(
      () => process.send?.({ listening: true }),
      (error: unknown) => process.send?.({ error: String(error) }),
    );
  }
});
ready({}, leave);
