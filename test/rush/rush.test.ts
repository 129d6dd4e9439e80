/** The rush against an API that keeps its word, and against one that breaks it in each way the comparison knows. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startProvider } from '../../src/provider/standin.ts';
import { rushCommand } from '../../src/rush/command.ts';
import type { RushReport } from '../../src/rush/report.ts';
import { startFakeApi, type Lie } from './fake-api.ts';

const webhookSecret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;

const env = { ADMIN_TOKEN: 'an-admin-token-of-the-test' };
const allPay = { payers: 1, abandoners: 0, latePayers: 0 };

async function rushAt(lie: Lie, options: Record<string, unknown> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'rush-'));
  let providerUrl = '';
  const said: string[] = [];
  const api = await startFakeApi(lie, () => providerUrl);
  const provider = await startProvider({ webhookUrl: `${api.url}/webhooks/payments`, webhookSecret });
  providerUrl = provider.url;
  try {
    const report = join(folder, 'report.json');
    const page = join(folder, 'report.html');
    const code = await rushCommand(
      {
        url: api.url,
        providerUrl: provider.url,
        buyers: 80,
        units: 10,
        holdSeconds: 2,
        over: 0.5,
        connections: 10,
        pressAgain: 0,
        cut: 0,
        settle: 1,
        report,
        html: page,
        audit: false,
        ...options,
      },
      env,
      (text) => said.push(text),
    );
    const found = JSON.parse(await readFile(report, 'utf8')) as RushReport;
    expect(said.at(-1)).toContain(page);
    const html = await readFile(page, 'utf8');
    return {
      code,
      found,
      html,
      broken: found.checks.filter(({ failures }) => failures.length > 0).map(({ name }) => name),
    };
  } finally {
    await provider.close();
    await api.close();
    await rm(folder, { recursive: true });
  }
}

describe.concurrent('flashgate rush', () => {
  it('finds nothing wrong with an API that keeps its word', async () => {
    const { code, found, html, broken } = await rushAt('none', {
      pressAgain: 0.5,
      cut: 0.2,
      holdSeconds: 4, // longer than the last press: only those who come back win a second time
    });
    expect(broken).toEqual([]);
    expect(code).toBe(0);
    const counts = Object.fromEntries(found.answers.map(({ kind, count }) => [kind, count]));
    expect(counts.cut).toBeGreaterThan(0);
    const inRush = found.course.buckets.flatMap((bucket) => Object.values(bucket.counts));
    expect(inRush.reduce((a, b) => a + b, 0)).toBe(found.inRush);
    expect(html).toContain('12 of 12 comparisons hold, the audit was left out');
    expect(found.winners).toBeGreaterThan(0);
    expect(found.orders.PAID).toBeGreaterThan(0);
    expect(found.orders.EXPIRED).toBeGreaterThan(0);
    expect(found.money.refunds).toBe(1); // a tenth of ten winners pays late
    const owned = found.orders.PAID ?? 0;
    expect(owned + (found.unitsLeft ?? Number.NaN)).toBe(10);
    expect(found.money.captured - found.money.refunded).toBe(owned * 1999);
  });

  it.each<[lie: Lie, check: string, options: Record<string, unknown>]>([
    ['told_without_order', 'told_has_order', allPay],
    ['other_amount', 'told_has_order', allPay],
    ['order_without_telling', 'order_was_told', allPay],
    ['two_reservations', 'one_at_a_time', { ...allPay, pressAgain: 1, holdSeconds: 4 }],
    ['holder_refused', 'holder_was_told', { ...allPay, pressAgain: 1, holdSeconds: 4 }],
    ['winner_refused', 'no_winner_refused', allPay],
    ['sold_out_too_early', 'sold_out_was_true', allPay],
    ['oversold', 'units', allPay],
    ['money_kept', 'money', {}],
    ['never_expires', 'all_final', { latePayers: 0, abandoners: 0.3, comeBack: 0 }],
    ['internal_error', 'answers', allPay],
  ])('catches %s by the check %s', async (lie, check, options) => {
    const { code, broken } = await rushAt(lie, options);
    expect(broken).toContain(check);
    expect(code).toBe(1);
  });

  it('catches a payment that was accepted in time and not honoured', async () => {
    const { code, broken } = await rushAt('paid_but_expired', { ...allPay, holdSeconds: 4 });
    expect(broken).toContain('paid_in_time');
    expect(code).toBe(1);
  });

  it('refuses options and environments that it cannot use, with exit code 64', async () => {
    const options = { providerUrl: 'http://127.0.0.1:9', audit: false };
    const said: string[] = [];
    const run = (given: Record<string, unknown>, from = env as NodeJS.ProcessEnv) =>
      rushCommand({ ...options, ...given }, from, (text) => said.push(text));
    expect(await run({ buyers: 'many' })).toBe(64);
    expect(await run({ payers: 0.9 })).toBe(64);
    expect(await run({ unknown: 1 })).toBe(64);
    expect(await run({}, {})).toBe(64);
    expect(await run({ audit: true })).toBe(64);
    const reasons = ['--buyers: ', 'shares of all winners', 'unknown', 'ADMIN_TOKEN', 'DATABASE_URL, REDIS_URL'];
    expect(reasons.map((reason, n) => said[n]?.includes(reason))).toEqual(reasons.map(() => true));
  });

  it('says 1, and why, when the API is out of reach', async () => {
    const said: string[] = [];
    const gone = await startFakeApi('none', () => '');
    await gone.close(); // nobody listens there any more
    const options = { url: gone.url, providerUrl: gone.url, audit: false };
    expect(await rushCommand(options, env, (text) => said.push(text))).toBe(1);
    expect(said.join()).toContain('ECONNREFUSED');
  });
});
