/** The comparison by itself: the exception that it grants, and what no API in memory can be made to do. */
import { describe, expect, it } from 'vitest';
import { compare, ordersUnheardOf, type Evidence } from '../../src/rush/ledger-compare.ts';
import type { Order } from '../../src/rush/ledger-read.ts';

const start = Date.parse('2030-01-01T00:00:00Z');

const order = (changes: Partial<Order> = {}): Order => ({
  reservationId: 'r-1',
  saleId: 's',
  userId: 'u-1',
  qty: 1,
  amount: 100,
  currency: 'EUR',
  status: 'PAID',
  reservedAt: start,
  expiresAt: start + 10_000,
  ...changes,
});

/** One buyer who was told of one order and paid it, among ten units; all of it holds. */
function evidence(changes: Partial<Evidence> = {}): Evidence {
  return {
    heard: [{ userId: 'u-1', told: [order()], refusals: [], unknown: 0 }],
    unexpected: [],
    troubles: [],
    orders: new Map([['r-1', order()]]),
    before: new Set(),
    sale: { gate: { stock: 9, held: 1, forfeited: 0, total: 10 }, ledger: { total: 10, sold: 1 } },
    payments: [
      {
        paymentId: 'p-1',
        reservationId: 'r-1',
        currency: 'EUR',
        captured: 100,
        refunded: 0,
        deliveredAt: start + 1000,
      },
    ],
    quantity: 1,
    ...changes,
  };
}

const broken = (changes: Partial<Evidence>) =>
  compare(evidence(changes))
    .filter(({ failures }) => failures.length > 0)
    .map(({ name }) => name);

describe('compare', () => {
  it('finds nothing where all holds, and says how much it looked at', () => {
    expect(broken({})).toEqual([]);
    expect(compare(evidence()).find(({ name }) => name === 'told_has_order')?.examined).toBe(1);
  });

  it('excuses an order of a buyer who lost a reply, and counts it; without a lost reply it is a lie', () => {
    const silent = { userId: 'u-1', told: [], refusals: [{ kind: 'sold_out', sentAt: start, heardAt: start + 5 }] };
    const sale = { gate: { stock: 0, held: 1, forfeited: 0, total: 1 }, ledger: { total: 1, sold: 1 } };
    const excused = evidence({ heard: [{ ...silent, unknown: 1 }], sale });
    expect(ordersUnheardOf(excused)).toHaveLength(1);
    expect(broken(excused)).toEqual([]);
    expect(broken({ ...excused, heard: [{ ...silent, unknown: 0 }] })).toEqual(['order_was_told']);
  });

  it('does not excuse a refusal that came while the buyer was holding', () => {
    const refusals = [{ kind: 'sold_out', sentAt: start + 3000, heardAt: start + 3005 }];
    const sale = { gate: { stock: 0, held: 1, forfeited: 0, total: 1 }, ledger: { total: 1, sold: 1 } };
    expect(broken({ heard: [{ userId: 'u-1', told: [], refusals, unknown: 1 }], sale })).toEqual(['holder_was_told']);
  });

  it('lets a buyer win again after the first hold has ended, and not before', () => {
    const first = order({ status: 'EXPIRED' });
    const again = (reservedAt: number) => {
      const second = order({ reservationId: 'r-2', reservedAt, expiresAt: reservedAt + 10_000 });
      return broken({
        heard: [{ userId: 'u-1', told: [first, second], refusals: [], unknown: 0 }],
        orders: new Map([first, second].map((one) => [one.reservationId, one])),
        payments: evidence().payments.map((payment) => ({ ...payment, reservationId: 'r-2' })),
      });
    };
    expect(again(start + 10_500)).toEqual([]);
    expect(again(start + 5000)).toEqual(['one_at_a_time']);
  });

  it('misses money: a paid order that nobody paid for, one paid twice, one in another currency', () => {
    const [payment] = evidence().payments as [Evidence['payments'][number]];
    expect(broken({ payments: [] })).toEqual(['money']);
    expect(broken({ payments: [payment, { ...payment, paymentId: 'p-2' }] })).toEqual(['money']);
    expect(broken({ payments: [payment, { ...payment, paymentId: 'p-2', refunded: 100 }] })).toEqual([]);
    expect(broken({ payments: [{ ...payment, currency: 'USD' }] })).toEqual(['money']);
  });

  it('misses units: at the gate, in the ledger, between the two, and when the gate is lost', () => {
    const gate = { stock: 9, held: 1, forfeited: 0, total: 10 };
    const ledger = { total: 10, sold: 1 };
    expect(broken({ sale: { gate: { ...gate, stock: 8 }, ledger } })).toEqual(['units']);
    expect(broken({ sale: { gate, ledger: { ...ledger, sold: 2 } } })).toEqual(['units']);
    expect(broken({ sale: { gate, ledger: { ...ledger, total: 11 } } })).toEqual(['units']);
    expect(broken({ sale: { gate: null, ledger } })).toEqual(['units']);
    expect(broken({ sale: { gate: { ...gate, stock: 8, forfeited: 1 }, ledger } })).toEqual([]);
  });

  it('is not content with a rush in which nobody was told anything', () => {
    expect(broken({ heard: [{ userId: 'u-1', told: [], refusals: [], unknown: 3 }] })).toEqual(['answers']);
  });
});
