/** bench/k6/rush.js: its types against k6's own, and its functions against stand-ins for k6's modules. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { Call } from './k6-standins.ts';

const ROOT = join(import.meta.dirname, '../..');
const node = (args: string[], env: Record<string, string> = {}) =>
  promisify(execFile)(process.execPath, args, {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], ...env },
    maxBuffer: 2 ** 24,
  });

type Result = {
  options: { thresholds: Record<string, string[]> };
  calls: Call[];
  checks: Record<string, { passed: number; failed: number }>;
  counters: Record<string, number>;
  expected: number[];
};

async function rush(settings: Record<string, string>, forced: object[] = []): Promise<Result> {
  const env = Object.fromEntries(Object.entries(settings).map(([name, value]) => [`K6_TEST_${name}`, value]));
  const { stdout } = await node(['--import', './test/bench/k6-standins.ts', 'test/bench/k6-run.ts'], {
    ...env,
    FORCED: JSON.stringify(forced),
  });
  return JSON.parse(stdout) as Result;
}

/** Whether k6 would call a threshold on a counter kept. */
function kept({ options, counters }: Result, name: string): boolean {
  const [, wanted] = /^count==(\d+)$/.exec(options.thresholds[name]?.[0] ?? '') ?? [];
  return counters[name] === Number(wanted);
}

const settings = { URL: 'http://api.test/', SERVICE_TOKEN: 's', ADMIN_TOKEN: 'a', BUYERS: '50', UNITS: '10' };

test('it is sound in the eyes of k6’s types', async () => {
  const { stdout } = await node(['node_modules/typescript/bin/tsc', '-p', 'bench/k6']);
  expect(stdout).toBe('');
}, 60_000);

describe('a rush', () => {
  test('creates a sale, lets each buyer press once, ends the sale; all thresholds are kept', async () => {
    const result = await rush(settings);
    const [created, ...rest] = result.calls;
    expect(created).toMatchObject({ method: 'PUT', body: { total: 10, maxPerReservation: 1 } });
    expect(created?.url).toMatch(/^http:\/\/api\.test\/admin\/sales\/k6-\d+$/);
    expect(created?.params.headers).toMatchObject({ authorization: 'Bearer a' });
    const presses = rest.slice(0, -1);
    expect(new Set(presses.map(({ body }) => (body as { userId: string }).userId)).size).toBe(50);
    expect(new Set(presses.map(({ params }) => params.headers?.['authorization']))).toEqual(new Set(['Bearer s']));
    expect(rest.at(-1)?.url).toMatch(/\/end$/);
    expect(result.counters).toEqual({ won: 10, sold_out: 40, unexpected: 0 });
    expect(['won', 'sold_out', 'unexpected'].map((name) => kept(result, name))).toEqual([true, true, true]);
    expect(Object.values(result.checks).map(({ failed }) => failed)).toEqual([0, 0]);
    expect(result.expected).toContain(409);
  });

  test.each([
    ['one unit too many', { status: 202, body: { outcome: 'ok', userId: 'buyer-0' } }, 'won'],
    ['an answer that is not in the contract', { status: 503, body: { code: 'gate_unavailable' } }, 'unexpected'],
    ['another 409', { status: 409, body: { code: 'ended' } }, 'unexpected'],
    ['a second hold that was not asked for', { status: 200, body: { outcome: 'dup' } }, 'unexpected'],
  ])('%s breaks a threshold', async (_, answer, broken) => {
    expect(kept(await rush(settings, [answer]), broken)).toBe(false);
  });

  test('a winner who is told another’s hold fails the check', async () => {
    const { checks } = await rush(settings, [{ status: 202, body: { outcome: 'ok', userId: 'somebody-else' } }]);
    expect(checks['a winner is told what was won']?.failed).toBe(1);
  });

  test('fewer buyers than units: everybody wins', async () => {
    const result = await rush({ ...settings, BUYERS: '5' });
    expect(result.counters).toMatchObject({ won: 5, sold_out: 0 });
    expect(kept(result, 'won') && kept(result, 'sold_out')).toBe(true);
  });
});
