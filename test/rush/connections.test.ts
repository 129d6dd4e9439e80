/** The rush's connections: kept alive, reused after a cut, and honest about what went wrong. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { Connections } from '../../src/rush/http.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function connect(origin: string, count: number, timeoutMs = 10_000): Connections {
  const connections = new Connections(origin, '/reserve', { authorization: 'Bearer t' }, count, timeoutMs);
  closing.unshift(() => connections.close());
  return connections;
}

async function startEcho() {
  const seen = { bodies: [] as string[], sockets: new Set<unknown>() };
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    seen.sockets.add(request.socket);
    request.setEncoding('utf8');
    let body = '';
    request.on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      seen.bodies.push(body);
      response.end(body);
    });
  };
  return { origin: await listen(createServer(answer)), seen };
}

it('sends many requests over few connections, each answered with its own', async () => {
  const { origin, seen } = await startEcho();
  const connections = connect(origin, 3);
  const bodies = Array.from({ length: 200 }, (_, n) => JSON.stringify({ n }));
  const replies = await Promise.all(bodies.map((body) => connections.ask(body, false)));
  expect(replies.map(({ reply }) => reply)).toEqual(bodies.map((body) => ({ status: 200, body })));
  expect(seen.sockets.size).toBe(3);
});

it('cuts a reply off after the server has the request, and goes on', async () => {
  const { origin, seen } = await startEcho();
  const connections = connect(origin, 2);
  await Promise.all([connections.ask('warm', false), connections.ask('warm', false)]);
  const bodies = Array.from({ length: 60 }, (_, n) => `press ${n}`);
  const replies = await Promise.all(bodies.map((body, n) => connections.ask(body, n % 3 === 0)));
  const expected = bodies.map((body, n) => (n % 3 === 0 ? { failure: 'cut' } : { status: 200, body }));
  expect(replies.map(({ reply }) => reply)).toEqual(expected);
  expect(replies.every(({ sentAt }) => sentAt !== undefined)).toBe(true);
  await expect.poll(() => seen.bodies.filter((body) => body !== 'warm').toSorted()).toEqual(bodies.toSorted());
});

it('names what went wrong: refused, closed, timed out', async () => {
  const refused = await connect('http://127.0.0.1:9', 1).ask('x', false);
  expect(refused).toEqual({ reply: { failure: 'ECONNREFUSED' }, sentAt: undefined });

  const hangUp = await listen(createTcpServer((socket) => socket.once('data', () => socket.destroy())));
  expect((await connect(hangUp, 1).ask('x', false)).reply).toEqual({ failure: 'UND_ERR_SOCKET' });

  const silent = await listen(createServer((request) => void request.resume()));
  expect((await connect(silent, 1, 500).ask('x', false)).reply).toEqual({ failure: 'timeout' });
});
