/** What the bench measures with: CPU time, profiles, connections, calls to Redis. Each against something known. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { endChild, startChild } from '../../bench/lib/child.ts';
import { Connection } from '../../bench/lib/connection.ts';
import { cpuMs, family, parentOf, residentBytes, watch } from '../../bench/lib/cpu.ts';
import { Load } from '../../bench/lib/load.ts';
import { summarise } from '../../bench/lib/profile.ts';
import { encode, sendAll } from '../../bench/lib/raw-redis.ts';
import { freshStores, type Stores } from '../support/stores.ts';

/** Uses that much CPU time by itself. */
const burning = (ms: number) =>
  `const end = process.cpuUsage().user + ${ms * 1000}; while (process.cpuUsage().user < end);`;

describe.runIf(process.platform === 'linux')('CPU time', () => {
  test('is what the process itself says, also of its children and of those that have ended', async () => {
    const code = `const { spawnSync, spawn } = require('node:child_process');
      spawnSync(process.execPath, ['-e', ${JSON.stringify(burning(200))}]);
      spawn(process.execPath, ['-e', ${JSON.stringify(`${burning(200)} console.log('x'); setInterval(() => {}, 1000)`)}], { stdio: 'inherit' });
      ${burning(200)} setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const [pid = 0] = [child.pid];
      await once(child.stdout, 'data');
      await expect.poll(() => cpuMs(pid), { timeout: 15_000 }).toBeGreaterThan(600);
      expect(family(pid)).toHaveLength(2);
      expect(parentOf(pid)).toBe(process.pid);
      expect(residentBytes(pid)).toBeGreaterThan(20 * 2 ** 20);
    } finally {
      const ended = once(child, 'exit'); // until then its time is neither its own nor ours
      for (const pid of family(child.pid ?? 0).reverse()) process.kill(pid, 'SIGKILL');
      await ended;
    }
  });

  test('is counted from when the watch began', async () => {
    const spent = watch({ own: process.pid });
    const before = process.cpuUsage();
    await new Promise((resolve) => setTimeout(resolve, 20));
    for (const end = performance.now() + 100; performance.now() < end;);
    const { user, system } = process.cpuUsage(before);
    expect(Math.abs(spent().own - (user + system) / 1000)).toBeLessThan(60);
  });
});

test('a profile: the function that took the time is named first, in microseconds per request', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'profile-'));
  try {
    const code = `function hot() { ${burning(300)} } hot();`;
    const child = spawn(process.execPath, ['--cpu-prof', `--cpu-prof-dir=${folder}`, '-e', code]);
    await once(child, 'exit');
    const { functions, parts, total } = summarise(folder, [{ from: 0, to: Infinity }], 1000);
    expect(parts.reduce((sum, { us }) => sum + us, 0)).toBeCloseTo(total);
    expect(summarise(folder, [{ from: 0, to: 1 }], 1000).total).toBe(0);
    expect(functions.slice(0, 3).some(({ what }) => /hot|cpuUsage/.test(what))).toBe(true);
    expect(total).toBeGreaterThan(200);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

describe('the load', () => {
  let server: Server;
  let port: number;
  const seen: { user: string; authorization: string | undefined }[] = [];
  beforeAll(async () => {
    server = createServer((request, response) => {
      let text = '';
      request.on('data', (part: Buffer) => (text += part.toString()));
      request.on('end', () => {
        const { userId } = JSON.parse(text) as { userId: string };
        seen.push({ user: userId, authorization: request.headers.authorization });
        if (userId.endsWith('7')) return void request.socket.destroy();
        const status = userId.endsWith('5') ? 503 : 409;
        response.writeHead(status).end(JSON.stringify({ code: status === 503 ? 'paused' : 'sold_out' }));
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  afterAll(() => server.close());

  test.each([
    ['closed loop', {}],
    ['open loop', { rate: 2_000 }],
  ])('%s: each buyer presses once; answers, refusals and lost connections are told apart', async (_, pace) => {
    seen.length = 0;
    const load = await Load.start();
    try {
      const job = { port, path: '/', token: 't', connections: 5, requests: 100, firstUser: 1000, ...pace };
      const result = await load.run(job);
      expect(result.statuses).toEqual({ 0: 10, 409: 80, 503: 10 });
      expect(result.refusals).toEqual({ paused: 10 });
      expect(result.conflicts).toEqual({ sold_out: 2 }); // the first, and the one 64 later
      expect(result.lost).toMatch(/closed by the server|ECONNRESET/);
      expect(result.unanswered).toBe(0);
      expect(new Set(seen.map(({ user }) => user)).size).toBe(100);
      expect(new Set(seen.map(({ authorization }) => authorization))).toEqual(new Set(['Bearer t']));
      expect(result.latencyMs.p50).toBeLessThanOrEqual(result.latencyMs.p99);
    } finally {
      await load.stop();
    }
  });

  test('a port where nobody listens is an error, not a fast answer', async () => {
    const load = await Load.start();
    try {
      const job = { port: 1, path: '/', token: '', connections: 1, requests: 1, firstUser: 1 };
      await expect(load.run(job)).rejects.toThrow(/ECONNREFUSED/);
    } finally {
      await load.stop();
    }
  });

  test('a reply that comes in pieces is one reply', async () => {
    const pieces = createServer((_request, response) => {
      response.writeHead(202, { 'content-length': 6 });
      response.write('abc');
      setTimeout(() => response.end('def'), 20);
    }).listen(0, '127.0.0.1');
    await once(pieces, 'listening');
    const connection = new Connection('127.0.0.1', (pieces.address() as AddressInfo).port, '127.0.0.1');
    await connection.open();
    const ask = () =>
      new Promise((resolve) => connection.ask('GET / HTTP/1.1\r\nhost: x\r\n\r\n', (...reply) => resolve(reply)));
    expect([await ask(), await ask()]).toEqual([
      [202, 'abcdef'],
      [202, 'abcdef'],
    ]);
    connection.close();
    pieces.close();
  });
});

test('a child that ends before it is ready is an error', async () => {
  await expect(startChild(join(import.meta.dirname, 'no-such-file.ts'))).rejects.toThrow(/before it was ready/);
  const { child } = await startChild(join(import.meta.dirname, '../../bench/peers/bare.ts'));
  await endChild(child);
  await endChild(child); // twice is once
});

describe('calls to Redis as they are', () => {
  let stores: Stores;
  beforeAll(async () => (stores = await freshStores()));
  afterAll(() => stores.drop());

  test('all are run once, and counted by their mark', async () => {
    const call = (n: number) => encode(['EVAL', "redis.call('INCRBY', KEYS[1], ARGV[1]) return 'mark-0'", 1, 'sum', n]);
    await sendAll(stores.redisUrl, { calls: 1000, call, inFlight: 7, marker: 'mark-0' });
    const redis = new Redis(stores.redisUrl);
    expect(await redis.get('sum')).toBe(String((999 * 1000) / 2));
    redis.disconnect();
  });

  test('a part of a reply that begins with a minus is no error', async () => {
    const text = `mark-0${'-'.repeat(300_000)}`; // longer than one read
    const call = () => encode(['ECHO', text]);
    await sendAll(stores.redisUrl, { calls: 3, call, inFlight: 1, marker: 'mark-0' });
  });

  test('an error is not counted as an answer', async () => {
    const call = () => encode(['NO-SUCH-COMMAND']);
    await expect(sendAll(stores.redisUrl, { calls: 3, call, inFlight: 1, marker: 'OK' })).rejects.toThrow(
      /unknown command/,
    );
  });
});
