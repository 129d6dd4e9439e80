/**
 * Coordinated omission: a server that stalls must show in the latencies, for everyone who was due meanwhile and not only
 * for the few requests that happened to be on their way.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { performance } from 'node:perf_hooks';
import { afterEach, expect, it } from 'vitest';
import { Crowd } from '../../src/rush/crowd.ts';
import { Connections } from '../../src/rush/http.ts';
import { planRush } from '../../src/rush/schedule.ts';
import { Tally } from '../../src/rush/tally.ts';

const CONNECTIONS = 4;
const BUYERS = 1000; // so that the requests on their way during the stall are less than one in a hundred

const plan = planRush({
  buyers: BUYERS,
  units: 1,
  quantity: 1,
  arrival: 'uniform',
  overSeconds: 2,
  pressAgain: 0,
  cut: 0,
  payers: 1,
  latePayers: 0,
  comeBack: 0,
  holdSeconds: 8,
  seed: 1,
});

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A server that says sold out, and stops answering once, for `stallMs`, after a quarter of the buyers. */
async function startStalling(stallMs: number) {
  const waiting: (() => void)[] = [];
  const stall = { began: 0, lasted: 0 };
  let asked = 0;
  const server = createServer((request, response) => {
    const answer = () => {
      response.writeHead(409, { 'content-type': 'application/problem+json' });
      response.end('{"status":409,"code":"sold_out"}');
    };
    request.resume().on('end', () => {
      asked += 1;
      if (asked === BUYERS / 4 && stallMs > 0) {
        stall.began = performance.now();
        setTimeout(() => {
          stall.lasted = performance.now() - stall.began;
          for (const late of waiting) late();
        }, stallMs);
      }
      if (stall.began > 0 && stall.lasted === 0) waiting.push(answer);
      else answer();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, stall };
}

async function rushAt(origin: string) {
  const connections = new Connections(origin, '/sales/s/reserve', {}, CONNECTIONS, 30_000);
  closing.unshift(() => connections.close());
  const tally = new Tally(50);
  await new Crowd({ saleId: 's', plan, connections, tally, onWin: () => undefined }).rush();
  const [line, ...others] = tally.lines();
  expect(line).toMatchObject({ kind: 'sold_out', count: BUYERS });
  expect(others).toEqual([]);
  return { ...line, lag: tally.lag() };
}

it('shows a stall to everyone who was due in it', async () => {
  const { origin, stall } = await startStalling(1000);
  const { p99 = 0, max = 0, lag } = await rushAt(origin);
  // At most CONNECTIONS requests waited for their reply. All others that were due in the stall, a quarter and more of
  // all, waited to be sent: were latency counted from sending, not even the p99 would know.
  expect(max).toBeGreaterThan(stall.lasted * 0.95);
  expect(p99).toBeGreaterThan(stall.lasted * 0.8);
  expect(lag.send.p99).toBeGreaterThan(stall.lasted * 0.8); // and says that they were sent late
});

it('shows that the driver itself is late', async () => {
  const { origin } = await startStalling(0);
  const blockedMs = 500;
  setTimeout(() => {
    const until = performance.now() + blockedMs;
    while (performance.now() < until); // the driver's only thread does something else
  }, 700);
  const { p99 = 0, lag } = await rushAt(origin);
  expect(lag.driver.max).toBeGreaterThan(blockedMs * 0.8);
  expect(lag.driver.p99).toBeGreaterThan(blockedMs * 0.5);
  expect(p99).toBeGreaterThan(blockedMs * 0.5);
});
