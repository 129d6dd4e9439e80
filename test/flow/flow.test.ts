/**
 * The whole walk with the real processes: reserve over HTTP, queue, worker, ledger, payment by webhook, sweep, refund; and
 * at the end the audit. A hold lasts a few seconds.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startProvider, type Provider } from '../../src/provider/standin.ts';
import { SECRET, until } from '../ledger/house.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { run, start, type Program } from './processes.ts';

const TOKENS = { SERVICE_TOKEN: 'a-service-token-of-the-test', ADMIN_TOKEN: 'an-admin-token-of-the-test' };
const HOLD_SECONDS = 4;
/** For a machine with much else to do: a process takes its time to start. */
const PATIENCE_MS = 40_000;
const TOTAL = 20;

type Reservation = {
  reservationId: string;
  status: string;
  amount: number;
  currency: string;
  reason?: string;
  refund?: string;
};

let stores: Stores;
let env: Record<string, string>;
let provider: Provider;
let own: string;
const programs: Record<string, Program> = {};

beforeAll(async () => {
  stores = await freshStores();
  env = {
    ...{ ...stores.env, ...TOKENS, WEBHOOK_SECRET: SECRET, PORT: '0', KEEPER_INTERVAL_MS: '100' },
    ...{ QUEUE_WAIT_SECONDS: '1', PARKED_GRACE_MS: '3000', SALES_REFRESH_MS: '100' },
    // What a killed process had in its hands is somebody else's after this long.
    ...{
      LEASE_TTL_MS: '3500',
      QUEUE_VISIBILITY_SECONDS: '3',
      DB_LOCK_TIMEOUT_MS: '1000',
      DB_STATEMENT_TIMEOUT_MS: '1500',
    },
  };
  programs['serve'] = start('serve', env);
  own = String((await programs['serve'].says('the API listens'))['address']);
  provider = await startProvider({ webhookUrl: `${own}/webhooks/payments`, webhookSecret: SECRET });
  env['PAYMENT_PROVIDER_URL'] = provider.url;
});
afterAll(async () => {
  await Promise.all(Object.values(programs).map(({ end }) => end('SIGKILL')));
  await provider.close();
  await stores.drop();
});

async function call(method: string, path: string, body?: object, token = TOKENS.SERVICE_TOKEN) {
  const response = await fetch(path.startsWith('http') ? path : own + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> };
}

async function reserve(userId: string): Promise<Reservation> {
  const { status, body } = await call('POST', '/sales/phone/reserve', { userId });
  expect(status).toBe(202);
  return body as Reservation;
}
const at = (userId: string, { reservationId }: Reservation) =>
  `/sales/phone/reservations/${reservationId}?userId=${userId}`;
const look = async (userId: string, of: Reservation) => (await call('GET', at(userId, of))).body as Reservation;

async function becomes(userId: string, of: Reservation, status: string, refund?: string): Promise<void> {
  await until(async () => {
    const now = await look(userId, of);
    return now.status === status && now.refund === refund;
  }, PATIENCE_MS);
}
async function pay({ reservationId, amount, currency }: Reservation, but: object = {}): Promise<void> {
  const payment = { reservationId, amount, currency, ...but };
  expect((await call('POST', `${provider.url}/payments`, payment)).status).toBe(201);
}

describe('a sale', { timeout: 2 * PATIENCE_MS }, () => {
  const early: Record<string, Reservation> = {};

  test('is created, and buyers win, before there is a worker: QUEUED', async () => {
    const { status } = await call(
      'PUT',
      '/admin/sales/phone',
      {
        ...{ name: 'A phone', total: TOTAL, holdSeconds: HOLD_SECONDS, maxPerReservation: 1 },
        startsAt: new Date(Date.now() - 60_000).toISOString(),
        endsAt: new Date(Date.now() + 3_600_000).toISOString(),
        price: { amount: 1999, currency: 'EUR' },
      },
      TOKENS.ADMIN_TOKEN,
    );
    expect(status).toBe(201);
    await until(async () => (await call('GET', '/sales/phone')).status === 200);
    for (const userId of ['early', 'fickle']) {
      early[userId] = await reserve(userId);
      expect(await look(userId, early[userId])).toMatchObject({ status: 'QUEUED', amount: 1999 });
    }
  });

  test('money that comes while the order is still in the queue is kept; a cancellation too', async () => {
    const [paid, fickle] = [early['early'], early['fickle']];
    if (!paid || !fickle) throw new Error('reserved before');
    await pay(paid);
    expect((await call('DELETE', at('fickle', fickle))).status).toBe(204);
    expect(await look('fickle', fickle)).toMatchObject({ status: 'CANCELLED', reason: 'by_buyer' });
    programs['work'] = start('work', env);
    await becomes('early', paid, 'PAID');
    programs['keep'] = start('keep', env); // not before: where processes start slowly, the grace of parked money is over
    expect((await call('DELETE', at('early', paid))).body['code']).toBe('already_paid');
    await becomes('fickle', fickle, 'CANCELLED');
  });

  test('a payer is PAID; the same payment reported ten times over changes nothing', async () => {
    const won = await reserve('payer');
    await becomes('payer', won, 'PENDING_PAYMENT');
    await pay(won, { repeat: 10 });
    await becomes('payer', won, 'PAID');
  });

  test('a declined card is not the end of the hold', async () => {
    const won = await reserve('declined');
    await pay(won, { outcome: 'failed', paymentId: 'card' });
    await pay(won, { paymentId: 'card' });
    await becomes('declined', won, 'PAID');
  });

  test('a cancelled payment frees the hold, and the buyer may win again', async () => {
    const won = await reserve('gone');
    await becomes('gone', won, 'PENDING_PAYMENT');
    await pay(won, { outcome: 'canceled' });
    await becomes('gone', won, 'CANCELLED');
    const again = await reserve('gone');
    expect(again.reservationId).not.toBe(won.reservationId);
    await pay(again);
    await becomes('gone', again, 'PAID');
  });

  test('a late payer is refunded; so is one who pays twice, one who pays too little, and one who paid for nothing', async () => {
    const late = await reserve('late');
    const twice = await reserve('twice');
    const little = await reserve('little');
    await pay(twice, { paymentId: 'twice-1' });
    await becomes('twice', twice, 'PAID');
    await pay(twice, { paymentId: 'twice-2' });
    await pay(little, { amount: little.amount - 1 });
    await pay({ ...late, reservationId: 'order 66' }, { paymentId: 'stray' });
    await becomes('late', late, 'EXPIRED');
    await pay(late, { paymentId: 'late' });
    await becomes('late', late, 'EXPIRED', 'SUCCEEDED');
    await becomes('twice', twice, 'PAID', 'SUCCEEDED');
    await becomes('little', little, 'EXPIRED', 'SUCCEEDED');
    for (const paymentId of ['late', 'twice-2', 'stray']) {
      await until(
        async () => (await call('GET', `${provider.url}/payments/${paymentId}`)).body['refunded'] === 1999,
        PATIENCE_MS,
      );
    }
    expect((await call('GET', `${provider.url}/payments/twice-1`)).body['refunded']).toBe(0);
  });

  test('whoever lets the hold lapse loses it, and its unit can be won again', async () => {
    const idle = await reserve('idle');
    await becomes('idle', idle, 'EXPIRED');
    // early, payer, declined, gone and twice have paid; all else is back
    await until(async () => (await call('GET', '/sales/phone')).body['unitsLeft'] === TOTAL - 5, PATIENCE_MS);
    const again = await reserve('idle');
    await pay(again);
    await becomes('idle', again, 'PAID');
    expect(await look('idle', idle)).toMatchObject({ status: 'EXPIRED' });
  });

  test('worker and keeper are killed in the middle and started again: all is as it should be', async () => {
    const crowd = Array.from({ length: TOTAL - 6 }, (_, n) => `crowd-${n}`);
    const won = await Promise.all(
      crowd.map(async (userId, n) => {
        await sleep(20 * n);
        return [userId, await reserve(userId)] as const;
      }),
    );
    for (const name of ['work', 'keep']) {
      await programs[name]?.end('SIGKILL');
      programs[name] = start(name, env);
    }
    for (const [n, [, of]] of won.entries()) if (n % 2 === 0) await pay(of);
    for (const [n, [userId, of]] of won.entries()) {
      await until(async () => {
        const { status, refund } = await look(userId, of);
        // Those who pay may be too late, since whom the order waits for was killed; then they have their money back.
        return n % 2 === 0 ? status === 'PAID' || refund === 'SUCCEEDED' : status === 'EXPIRED';
      }, PATIENCE_MS);
    }
  });

  test('the audit holds, over a system at work', async () => {
    const { code, output } = await run(['audit', '--settle', '3'], env);
    expect(code, output).toBe(0);
  });

  test('no winner was refused, and SIGTERM ends each process well', async () => {
    const complaints = Object.values(programs).flatMap(({ complaints: all }) => all);
    expect(complaints.filter(({ level }) => Number(level) >= 50)).toEqual([]);
    const ends = await Promise.all(Object.values(programs).map(({ end }) => end('SIGTERM')));
    expect(ends).toEqual([0, 0, 0]);
    const { code, output } = await run(['audit'], env);
    expect(code, output).toBe(0);
  });
});
