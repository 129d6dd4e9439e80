/** With several API processes: a session is good at each of them, and the speed is that of all, which the first adds up. */
import { expect, test } from 'vitest';
import { ADMIN } from '../http/api.ts';
import { said, serve } from '../process/program.ts';
import { freshStores } from '../support/stores.ts';
import { readMeters, speedSince } from '../../src/http/ops/meters.ts';

test('two processes', async () => {
  const stores = await freshStores();
  const program = await serve({ ...stores.env, API_PROCESSES: '2' });
  try {
    const { url } = program;
    await said(program, /all API processes listen()/);
    // No connection is kept: the next may be the other process'.
    const at = (path: string, init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> } = {}) =>
      fetch(`${url}${path}`, {
        ...init,
        headers: { connection: 'close', 'content-type': 'application/json', ...init.headers },
      });
    const now = Date.now();
    const sale = {
      ...{ name: 'S', total: 5, holdSeconds: 60, maxPerReservation: 1, price: { amount: 1, currency: 'EUR' } },
      ...{ startsAt: new Date(now - 1000).toISOString(), endsAt: new Date(now + 3_600_000).toISOString() },
    };
    const bearer = { authorization: `Bearer ${ADMIN}` };
    expect((await at('/admin/sales/s', { method: 'PUT', headers: bearer, body: JSON.stringify(sale) })).status).toBe(
      201,
    );
    const signedIn = await at('/ops/session', { method: 'POST', body: JSON.stringify({ token: ADMIN }) });
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    for (let n = 0; n < 6; n += 1) expect((await at('/ops/session', { headers: { cookie } })).status).toBe(200);
    const stream = await at('/ops/events?sale=s', { headers: { cookie } });
    let text = '';
    for await (const bytes of stream.body ?? []) {
      text += Buffer.from(bytes).toString();
      if (/"speed":\{"answers":\{/.test(text)) break;
      expect(text.length, text).toBeLessThan(50_000);
    }
    expect(text).toMatch(/"speed":\{"answers":\{/);
  } finally {
    program.kill('SIGTERM');
    await program.ended;
    await stores.drop();
  }
}, 60_000);

test('the speed is the difference of two readings; a process that began anew is no speed below none', () => {
  const page = (ok: number, fast: number, all: number) => `# HELP flashgate_answers_total Answers
flashgate_answers_total{code="ok"} ${ok}
flashgate_latched_total 7
flashgate_gate_call_seconds_bucket{le="0.001"} ${fast}
flashgate_gate_call_seconds_bucket{le="0.0025"} ${all}
flashgate_gate_call_seconds_bucket{le="+Inf"} ${all}
`;
  const speed = speedSince(readMeters(page(10, 0, 0)), readMeters(page(30, 50, 100)), 2);
  expect(speed).toMatchObject({ answers: { ok: 10 }, latched: 0, gateMs: { p50: 1 } });
  expect(speed.gateMs?.p99).toBeCloseTo(2.47);
  const anew = speedSince(readMeters(page(30, 50, 100)), readMeters(page(3, 0, 0)), 1);
  expect(anew).toEqual({ answers: { ok: 0 }, latched: 0, gateMs: null });
});
