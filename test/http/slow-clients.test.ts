/** Clients that send slowly, or not at all, or do not read: their connections end, and nobody else notices. */
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { freshStores, type Stores } from '../support/stores.ts';
import { sendRaw } from './socket.ts';
import { putSale, SERVICE, testApi, type TestApi } from './api.ts';

vi.setConfig({ testTimeout: 60_000 });

let stores: Stores;
let api: TestApi;
let url: URL;
let saleId: string;
beforeAll(async () => {
  stores = await freshStores();
  const limits = { REQUEST_DEADLINE_MS: '1400', GATE_TIMEOUT_MS: '1000', QUEUE_TIMEOUT_MS: '1000' };
  api = await testApi({ ...stores.env, ...limits, CLIENT_TIMEOUT_MS: '1500' });
  saleId = await putSale(api);
  url = new URL(await api.url());
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

/** What came until the server closed; `drip` is called now and again. */
async function untilClosed(begin: string, drip: (socket: Socket) => void): Promise<string> {
  const socket = connect(Number(url.port), url.hostname);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => undefined); // written to after the server has closed, which is what is waited for
  if (begin !== '') socket.write(begin);
  const timer = setInterval(() => drip(socket), 100);
  await new Promise((resolve) => socket.once('close', resolve));
  clearInterval(timer);
  return Buffer.concat(chunks).toString();
}
const alive = async () => {
  const answer = await sendRaw(url.href, 'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(answer.statusCode).toBe(200);
};

const POST = () =>
  `POST /sales/${saleId}/reserve HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${SERVICE}\r\n` +
  'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"userId":"';

type Slow = { sends: string; then: string; gets: RegExp };
const slow = (): Slow[] => [
  // Never ends.
  { sends: 'GET /livez HTTP/1.1\r\nHost: x\r\n', then: 'X-More: y\r\n', gets: /^HTTP\/1.1 408 .*request_timeout/s },
  { sends: POST(), then: 'u', gets: /^HTTP\/1.1 408 .*request_timeout/s },
  { sends: 'GET /', then: 'x', gets: /^HTTP\/1.1 408 .*request_timeout/s },
  // Goes silent.
  { sends: '', then: '', gets: /^$|^HTTP\/1.1 408 / },
  { sends: 'GET /livez HTTP/1.1\r\nHost: x\r\n', then: '', gets: /^$|^HTTP\/1.1 408 / },
  { sends: POST(), then: '', gets: /^$|^HTTP\/1.1 408 / },
];

test('who sends without an end, or goes silent, is cut off; others are served meanwhile', async () => {
  await Promise.all([
    ...slow().map(async ({ sends, then, gets }) => {
      const got = await untilClosed(sends, (socket) => then !== '' && socket.write(then));
      expect(got, `${sends}…${then}`).toMatch(gets);
    }),
    alive(),
  ]);
});

test('a client that asks and asks and never reads is cut off, and little is kept for it', async () => {
  const socket = connect(Number(url.port), url.hostname);
  socket.on('error', () => undefined); // cut off, which is what is waited for
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.pause();
  const asking = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2000);
  socket.write(asking);
  const before = process.memoryUsage().rss;
  await expect.poll(() => connections(), { timeout: 30_000 }).toBe(0);
  await alive();
  // All that came in one piece is answered at once: 75 MB of requests. With a document each it was 236 MB.
  expect(process.memoryUsage().rss - before).toBeLessThan(150 * 2 ** 20);
  socket.resume(); // only one that reads learns that it was cut off
  await closed;
});

const connections = () =>
  new Promise<number>((resolve, reject) => {
    api.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });

test('a client that waits for its answer is not taken for one of these', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      fetch(new URL(`/sales/${saleId}/reserve`, url), {
        method: 'POST',
        headers: { authorization: `Bearer ${SERVICE}`, 'content-type': 'application/json' },
        body: JSON.stringify({ userId: `u-${n}` }),
      }),
    ),
  );
  expect(answers.every(({ status }) => status === 202 || status === 409)).toBe(true);
});
