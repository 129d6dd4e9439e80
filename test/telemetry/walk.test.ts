/** What is done to a reservation is found in the log of each process by its id, at `debug`; at `info` all are quiet. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { saleSettings, settings, type Won } from '../http/api.ts';
import { until } from '../ledger/house.ts';
import { said, serve, start, type Program } from '../process/program.ts';
import { freshStores, type Stores } from '../support/stores.ts';

type Line = { level: number; msg: string; [member: string]: unknown };

let stores: Stores;
beforeAll(async () => {
  stores = await freshStores();
});
afterAll(() => stores.drop());

const linesOf = ({ output }: Program) =>
  output()
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line);

test('won, recorded, expired, given back', { timeout: 90_000 }, async () => {
  const env = { ...settings, ...stores.env, LOG_LEVEL: 'debug', KEEPER_INTERVAL_MS: '100' };
  const api = await serve(env);
  const programs = { serve: api as Program, work: start(['work'], env), keep: start(['keep'], env) };
  const body = (value: object) => JSON.stringify(value);
  const headers = (token: string) => ({ authorization: `Bearer ${token}`, 'content-type': 'application/json' });
  await fetch(`${api.url}/admin/sales/phone`, {
    ...{ method: 'PUT', headers: headers(settings.ADMIN_TOKEN), body: body(saleSettings({ holdSeconds: 1 })) },
  });
  const reply = await fetch(`${api.url}/sales/phone/reserve`, {
    ...{ method: 'POST', body: body({ userId: 'buyer' }) },
    headers: { ...headers(settings.SERVICE_TOKEN), 'x-request-id': 'shop-request-7' },
  });
  const { reservationId } = (await reply.json()) as Won;
  await said(programs.keep, /the gate gave back/);
  const about = (name: keyof typeof programs) =>
    linesOf(programs[name]).filter((line) => line.reservationId === reservationId);
  await until(() => about('work').length > 0);
  expect(about('serve')).toMatchObject([{ msg: 'a hold is told', requestId: 'shop-request-7', outcome: 'ok' }]);
  expect(about('work')).toMatchObject([{ msg: 'a hold is recorded', status: 'PENDING_PAYMENT' }]);
  expect(about('keep')).toMatchObject([{ msg: 'an unpaid hold has expired' }, { answer: 'released' }]);
  for (const program of Object.values(programs)) {
    for (const line of linesOf(program)) {
      if ('reservationId' in line) expect(line).toMatchObject({ level: 20, saleId: 'phone' });
    }
    program.kill('SIGTERM');
  }
  const ends = await Promise.all(Object.values(programs).map(({ ended }) => ended));
  expect(ends.map(({ code }) => code)).toEqual([0, 0, 0]);
});
