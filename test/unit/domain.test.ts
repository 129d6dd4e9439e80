/** The pure functions: holds as text, phases of a sale, the ledger's decision, what input is taken. */
import { createHash, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AnyEvent, PaymentEvent } from '../../src/domain/payment.ts';
import { buyerKey, decide, type Ledger } from '../../src/domain/recording.ts';
import {
  duty,
  formatHold,
  MAX_AMOUNT,
  OrderStatus,
  parseHold,
  ReservationId,
  SaleId,
  UserId,
  type Hold,
} from '../../src/domain/reservation.ts';
import { phase, SaleSettings } from '../../src/domain/sale.ts';
import { SHARDS, shardOf } from '../../src/domain/shard.ts';

function hold(but: Partial<Hold> = {}): Hold {
  return {
    ...{ reservationId: randomUUID(), saleId: 's', userId: 'ann', qty: 1, amount: 500, currency: 'EUR' },
    ...{ reservedAt: 1_700_000_000_000, expiresAt: 1_700_000_600_000 },
    ...but,
  };
}

describe('a hold as text', () => {
  const visible = fc.string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((n) => String.fromCharCode(n)),
    minLength: 1,
  });
  const anyHold = fc.record({
    reservationId: fc.uuid(),
    saleId: fc.constant('s'),
    userId: visible,
    qty: fc.integer({ min: 1, max: 1000 }),
    amount: fc.integer({ min: 0, max: MAX_AMOUNT }),
    currency: fc.constantFrom('EUR', 'JPY', 'XXX'),
    reservedAt: fc.integer({ min: 0, max: 9_999_999_999_999 }),
    expiresAt: fc.integer({ min: 0, max: 9_999_999_999_999 }),
  });

  test('there and back', () => {
    fc.assert(
      fc.property(anyHold, (one) => {
        expect(parseHold(one.saleId, one.userId, formatHold(one))).toEqual(one);
      }),
    );
  });

  test('in the order that the contract fixes', () => {
    const reservationId = '0190b8a5-0000-4000-8000-000000000001';
    const text = `${reservationId}|3|1700000000000|1700000600000|9007199254740991|EUR`;
    expect(formatHold(hold({ reservationId, qty: 3, amount: MAX_AMOUNT }))).toBe(text);
  });

  const good = formatHold(hold());
  test.each([
    ['nothing', ''],
    ['a word', 'yes'],
    ['one field less', good.slice(0, good.lastIndexOf('|'))],
    ['one field more', `${good}|1`],
    ['a short id', good.slice(1)],
    ['another currency code', good.replace('EUR', 'Euro')],
    ['a quantity of nothing', good.replace('|1|', '|0|')],
    ['a quantity that is empty', good.replace('|1|', '||')],
    ['a quantity that is no number', good.replace('|1|', '|one|')],
    ['a quantity that is broken', good.replace('|1|', '|1.5|')],
    ['an amount beyond what a number holds', good.replace('|500|', '|9007199254740993|')],
  ])('%s is refused', (_, text) => {
    expect(() => parseHold('s', 'ann', text)).toThrow(/cannot be read/);
  });
});

test('what an ended order needs at the gate', () => {
  expect(Object.fromEntries(OrderStatus.options.map((status) => [status, duty(status)]))).toEqual({
    PENDING_PAYMENT: undefined,
    PAID: undefined,
    EXPIRED: 'release',
    CANCELLED: 'release',
    REJECTED: 'forfeit',
    REFUNDED: 'release_after_settings',
  });
});

describe('input', () => {
  const good: [{ safeParse: (value: unknown) => { success: boolean } }, unknown[], unknown[]][] = [
    [
      UserId,
      ['a', 'u-1', '!~', 'x'.repeat(128), '|'],
      ['', ' ', 'a b', 'a\u0000', 'ä', 'x'.repeat(129), 'a\n', 1, null],
    ],
    [SaleId, ['a', 'A_-9', 'x'.repeat(64)], ['', 'a:b', 'a}b', 'x'.repeat(65), 'a\n', 2 ** 53]],
    [ReservationId, [randomUUID()], ['', 'x', randomUUID().slice(1), `${randomUUID()}0`]],
  ];
  test.each(good)('names', (schema, taken, refused) => {
    for (const value of taken) expect(schema.safeParse(value).success, String(value)).toBe(true);
    for (const value of refused) expect(schema.safeParse(value).success, JSON.stringify(value)).toBe(false);
  });

  const settings = {
    ...{ name: 'Phone', total: 100, startsAt: '2030-01-01T00:00:00Z', endsAt: '2030-01-02T00:00:00+01:00' },
    ...{ holdSeconds: 600, maxPerReservation: 2, price: { amount: 49_900, currency: 'EUR' } },
  };
  test.each<[string, object]>([
    ['total', { total: -1 }],
    ['total as text', { total: '100' }],
    ['total with a fraction', { total: 1.5 }],
    ['total without end', { total: Infinity }],
    ['a start without a zone', { startsAt: '2030-01-01T00:00:00' }],
    ['no hold time', { holdSeconds: 0 }],
    ['an empty name', { name: '' }],
    ['a currency in small letters', { price: { amount: 1, currency: 'eur' } }],
    ['a price below zero', { price: { amount: -1, currency: 'EUR' } }],
    ['a member that is not known', { colour: 'red' }],
  ])('settings with %s are refused', (_, wrong) => {
    expect(SaleSettings.safeParse(settings).success).toBe(true);
    expect(SaleSettings.safeParse({ ...settings, ...wrong }).success).toBe(false);
  });

  test('the dearest sale keeps every digit', () => {
    expect(Number.isSafeInteger(1_000_000_000_000 * 1000)).toBe(true);
  });

  const event = (data: object) => ({
    ...{ type: 'payment.succeeded', timestamp: '2030-01-01T00:00:00Z' },
    data: { paymentId: 'p', reservationId: 'any text', amount: 1, currency: 'eur', ...data },
  });
  test('an event of money: any reservation id, currency in capitals', () => {
    const parsed = PaymentEvent.safeParse(event({ more: 1 }));
    expect(parsed.data?.data).toMatchObject({ reservationId: 'any text', currency: 'EUR' });
  });
  test.each([
    { amount: -1 },
    { amount: 1.5 },
    { amount: 2 ** 53 },
    { amount: '1' },
    { paymentId: '' },
    { currency: 'EU' },
  ])('an event with %o is none', (wrong) => {
    expect(PaymentEvent.safeParse(event(wrong)).success).toBe(false);
    expect(AnyEvent.safeParse(event(wrong)).success).toBe(true);
  });
});

describe('the phase of a sale', () => {
  const [startsAt, endsAt] = [100, 200];
  test.each([
    ['open', 99, 'scheduled'],
    ['open', 100, 'open'],
    ['open', 199, 'open'],
    ['open', 200, 'ended'],
    ['paused', 99, 'paused'],
    ['paused', 150, 'paused'],
    ['paused', 200, 'ended'],
    ['ended', 99, 'ended'],
    ['closed', 150, 'closed'],
  ] as const)('%s at %i is %s', (state, now, wanted) => {
    expect(phase({ state, startsAt, endsAt }, now)).toBe(wanted);
  });
});

test('shards: the first four bytes of SHA-1, big-endian, modulo 256', () => {
  for (const saleId of ['a', 'sample', 'x'.repeat(64)]) {
    const [a, b, c, d] = createHash('sha1').update(saleId).digest();
    expect(shardOf(saleId)).toBe(((a ?? 0) * 2 ** 24 + (b ?? 0) * 2 ** 16 + (c ?? 0) * 2 ** 8 + (d ?? 0)) % SHARDS);
  }
  expect(shardOf('abc')).toBe(0xa9993e36 % 256); // the digest of FIPS 180's own example
});

describe('the ledger’s decision', () => {
  const ledger = (total: number, sold = 0, but: Partial<Ledger> = {}): Ledger => ({
    stock: new Map([['s', { total, sold }]]),
    known: new Map(),
    live: new Map(),
    ...but,
  });
  const statuses = (holds: Hold[], books: Ledger) => {
    const { status } = decide(holds, books);
    return holds.map(({ reservationId }) => status.get(reservationId));
  };

  test('there is room: sold; none: rejected for good, with the reason', () => {
    const holds = [hold({ userId: 'a', qty: 2 }), hold({ userId: 'b', qty: 2 }), hold({ userId: 'c' })];
    expect(statuses(holds, ledger(3))).toEqual(['PENDING_PAYMENT', 'REJECTED', 'PENDING_PAYMENT']);
    expect(decide(holds, ledger(3)).orders[1]).toMatchObject({ reason: 'no_room', liveReservationId: null });
    expect(statuses(holds, ledger(3, 3))).toEqual(['REJECTED', 'REJECTED', 'REJECTED']);
  });

  test('a redelivery writes nothing and has the status that its order has', () => {
    for (const known of OrderStatus.options) {
      const one = hold();
      const decided = decide([one, one], ledger(0, 0, { known: new Map([[one.reservationId, known]]) }));
      expect(decided.orders).toEqual([]);
      expect([...decided.status]).toEqual([[one.reservationId, known]]);
    }
  });

  test('twice in one batch is one order', () => {
    const one = hold();
    expect(decide([one, one], ledger(5)).orders).toHaveLength(1);
  });

  test('a buyer with a live order: rejected, and told which, whether it was there or came before in the batch', () => {
    const [first, second] = [hold(), hold()];
    const live = new Map([[buyerKey(first), first.reservationId]]);
    const duplicate = { status: 'REJECTED', reason: 'duplicate_buyer', liveReservationId: first.reservationId };
    expect(decide([second], ledger(5, 1, { live })).orders).toMatchObject([duplicate]);
    expect(decide([first, second], ledger(5)).orders).toMatchObject([{ status: 'PENDING_PAYMENT' }, duplicate]);
  });

  test('a rejected hold does not keep the same buyer’s other one out', () => {
    const holds = [hold({ qty: 4 }), hold({ qty: 1 })];
    expect(statuses(holds, ledger(1))).toEqual(['REJECTED', 'PENDING_PAYMENT']);
  });

  test('a sale that is not there: no order, no status', () => {
    const decided = decide([hold({ saleId: 'other' })], ledger(5));
    expect(decided.orders).toEqual([]);
    expect(decided.status.size).toBe(0);
  });

  test('never more than there is, whatever comes', () => {
    const anyHolds = fc.array(
      fc.record({
        userId: fc.constantFrom('a', 'b', 'c', 'd'),
        qty: fc.integer({ min: 1, max: 4 }),
        again: fc.boolean(),
      }),
    );
    fc.assert(
      fc.property(anyHolds, fc.nat({ max: 12 }), fc.nat({ max: 12 }), (wanted, total, sold) => {
        const holds: Hold[] = [];
        for (const { userId, qty, again } of wanted) holds.push((again && holds[0]) || hold({ userId, qty }));
        const room = Math.max(0, total - sold);
        const { orders, status } = decide(holds, ledger(Math.max(total, sold), sold));
        const taken = orders.filter((order) => order.status === 'PENDING_PAYMENT');
        expect(taken.reduce((sum, { qty }) => sum + qty, 0)).toBeLessThanOrEqual(room);
        expect(new Set(taken.map(({ userId }) => userId)).size).toBe(taken.length);
        expect(new Set(orders.map(({ reservationId }) => reservationId)).size).toBe(orders.length);
        expect(status.size).toBe(new Set(holds.map(({ reservationId }) => reservationId)).size);
      }),
    );
  });
});
