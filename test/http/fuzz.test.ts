/**
 * No input makes a 500, a hang or a leak: requests made up at random, against every route and in both modes, and answers
 * that all keep to the contract. `FUZZ_RUNS=10000 npm test -- test/http/fuzz.test.ts` is the long one, `FUZZ_SEED` another.
 */
import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { problems } from '../../src/http/problem.ts';
import { runs, seed } from '../support/fuzz.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { ADMIN, putSale, SERVICE, signed, testApi, win, type TestApi, type Won } from './api.ts';
import { rawRequests, requests } from './fuzz-input.ts';
import { bearing, HS256, tokenOf } from './tokens.ts';

/** Per run of the short kind, with a machine that is busy in mind. */
const PATIENCE_MS = 60_000 + runs * 40;
/** Sockets at once. */
const AT_ONCE = 10;

/** Everything on that has code of its own; nothing on that answers by how busy the machine is. */
const COMMON = {
  ...{ MAX_EVENT_LOOP_DELAY_MS: '0', CLIENT_TIMEOUT_MS: '9000' },
  ...{ CORS_ORIGINS: 'https://shop.example', TRUST_PROXY: '127.0.0.0/8' },
};
const MODES: [mode: string, env: Record<string, string>][] = [
  ['service', { RATE_LIMIT_BUYER: '0' }],
  ['jwt', { ...HS256, RATE_LIMIT_BUYER: '50', RATE_LIMIT_ADDRESS: '200' }],
];

describe.each(MODES)('in %s mode', (mode, env) => {
  let stores: Stores;
  let api: TestApi;
  let known: { saleId: string; reservationId: string };
  let usual: string;
  beforeAll(async () => {
    stores = await freshStores();
    api = await testApi({ ...stores.env, ...COMMON, ...env });
    api.streams.close(); // an event stream tells what is, and ends
    const saleId = await putSale(api, { total: 1_000_000, maxPerReservation: 1000 });
    usual = mode === 'jwt' ? bearing(await tokenOf('somebody')).authorization : `Bearer ${SERVICE}`;
    known = mode === 'jwt' ? await winWith(usual, saleId) : await win(api, saleId, 'somebody');
  });
  afterAll(async () => {
    await api.close();
    await stores.drop();
  });
  const winWith = async (authorization: string, saleId: string) => {
    const request = {
      method: 'POST' as const,
      url: `/sales/${saleId}/reserve`,
      headers: { authorization },
      payload: {},
    };
    return (await api.app.inject(request)).json<Won>();
  };

  test(
    `${runs} requests: never a 500, each refusal a problem that the list has, every route reached, nothing kept`,
    async () => {
      const reached = new Set<string>();
      const heap: number[] = [];
      const property = fc.asyncProperty(requests, async ({ method, path, body, headers: given, honest }) => {
        const url = path.replace('KNOWN-RESERVATION', known.reservationId).replace('KNOWN', known.saleId);
        const authorization = url.startsWith('/admin') ? `Bearer ${ADMIN}` : usual;
        const response = await api.app.inject({
          method,
          url,
          headers: {
            ...(honest && url.startsWith('/webhooks') ? signed(body) : {}),
            ...given,
            ...(given.authorization === 'USUAL' ? { authorization } : {}),
          },
          ...(body === '' ? {} : { payload: body }),
        });
        if (response.statusCode !== 404 && response.statusCode !== 405)
          reached.add(`${method} ${url.split('?')[0] ?? ''}`);
        if (heap.length < 2 && reached.size > 50) heap.push(heapUsed());
        if (response.statusCode < 400) return;
        expect(response.statusCode, `${response.body} ${JSON.stringify(api.log.at(-1))}`).not.toBe(500);
        // A token that happens to be good, stores that are there: nothing is away.
        expect(response.statusCode, response.body).not.toBe(503);
        if (method === 'HEAD') return;
        const problem = response.json<{ code: keyof typeof problems; status: number }>();
        expect(Object.keys(problems)).toContain(problem.code);
        expect(problem.status).toBe(response.statusCode);
      });
      await fc.assert(property, { numRuns: runs, seed });
      expect(routesNotIn(reached)).toEqual([]);
      api.log.length = 0; // the test's own
      reached.clear();
      expect(heapUsed() - (heap[0] ?? 0), 'bytes that stay').toBeLessThan(48 * 2 ** 20);
    },
    PATIENCE_MS,
  );

  test(
    `${runs} streams of bytes over sockets: each connection ends, each answer is one, and others are served`,
    async () => {
      const { hostname, port } = new URL(await api.url());
      const property = fc.asyncProperty(
        fc.array(rawRequests(usual), { minLength: AT_ONCE, maxLength: AT_ONCE }),
        async (streams) => {
          const answers = await Promise.all(streams.map((bytes) => exchange(Number(port), hostname, bytes)));
          for (const [n, answer] of answers.entries()) {
            const statuses = [...answer.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status]) => Number(status));
            const sent = JSON.stringify(streams[n]?.toString('latin1'));
            expect(
              statuses.filter((status) => status === 500 || status === 503),
              `${sent} → ${answer}`,
            ).toEqual([]);
            expect(answer === '' || statuses.length > 0, `${sent} → ${answer}`).toBe(true);
          }
        },
      );
      await fc.assert(property, { numRuns: Math.ceil(runs / AT_ONCE), seed });
      expect((await fetch(`http://${hostname}:${port}/livez`)).status).toBe(200);
      await expect.poll(() => connections(api), { timeout: 20_000 }).toBeLessThanOrEqual(1); // fetch keeps its own
    },
    PATIENCE_MS,
  );

  /** Routes of the document that no request got to. */
  function routesNotIn(reached: Set<string>): string[] {
    const { paths } = api.app.swagger() as { paths: Record<string, Record<string, unknown>> };
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(routes.length).toBeGreaterThan(12);
    return routes.filter((route) => {
      const pattern = new RegExp(`^${route.replaceAll(/\{\w+\}/g, '[^/]+')}$`);
      return ![...reached].some((each) => pattern.test(each));
    });
  }
});

/** Sends the bytes and says no more; @returns all that came until the server closed */
function exchange(port: number, host: string, bytes: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, host, () => socket.end(bytes));
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', () => undefined); // the server may close before it has read all
    socket.once('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
  });
}

const connections = ({ app }: TestApi) =>
  new Promise<number>((resolve, reject) => {
    app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
function heapUsed(): number {
  collect();
  return process.memoryUsage().heapUsed;
}
