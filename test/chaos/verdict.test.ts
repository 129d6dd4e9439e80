/** The verdict must be able to be red: a run that is sound, and each thing that can be wrong with it by itself. */
import { describe, expect, test } from 'vitest';
import type { Struck } from '../../chaos/faults.ts';
import type { Order } from '../../chaos/ledger.ts';
import { Model, type Told } from '../../chaos/model.ts';
import { reportChecks, summary } from '../../chaos/report.ts';
import { holds, judge, type Evidence } from '../../chaos/verdict.ts';

const NOW = Date.now();
const PRICE = 500;

const told = (id: string, userId: string): Told => ({
  ...{ reservationId: id, saleId: 'many', userId, qty: 1, amount: PRICE, currency: 'EUR' },
  ...{ reservedAt: NOW - 10_000, expiresAt: NOW + 60_000 },
});
const order = (of: Told, status: string): Order => {
  const { reservationId, ...rest } = of;
  return { ...rest, id: reservationId, status, reason: null, recordedAt: NOW - 9000, changedAt: NOW - 5000 };
};
const struck = (kind: Struck['kind'], but: Partial<Struck> = {}): Struck => ({
  ...{ n: 1, kind, atMs: 0, forMs: 0, target: 'redis', how: '', startedAt: NOW - 9000, endedAt: NOW - 8500 },
  ...but,
});

/** A small run in which all is well: one paid, one given up, one that ran out, and the two who bought last. */
function sound() {
  const model = new Model(NOW - 20_000);
  const [paid, gaveUp, ranOut, last0, last1] = ['a', 'b', 'c', 'd', 'e'].map((id) => told(id, `buyer-${id}`)) as [
    Told,
    Told,
    Told,
    Told,
    Told,
  ];
  const all = [paid, gaveUp, ranOut, last0, last1];
  for (const one of all) {
    model.asks(one);
    model.tells(one);
    model.answered('ok');
  }
  model.askedToGiveUp.set('b', NOW - 8000);
  model.givenUp.set('b', NOW - 8000);
  model.shows('c', 'EXPIRED');
  for (const { reservationId, amount, currency } of [paid, last0, last1]) {
    const payment = { paymentId: `pay-${reservationId}`, reservationId, amount, currency, purpose: 'right' as const };
    model.payments.set(payment.paymentId, payment);
  }
  const captured = [paid, last0, last1].map(({ reservationId, amount, currency }) => ({
    ...{ paymentId: `pay-${reservationId}`, reservationId, amount, currency, status: 'succeeded' as const },
    ...{ captured: amount, refunded: 0 },
  }));
  const evidence = {
    ...{ model, struck: [] as Struck[], lastBuyers: ['d', 'e'], ownEnds: [] as string[], failures: [] as string[] },
    ledger: {
      orders: [
        ...[order(paid, 'PAID'), order(gaveUp, 'CANCELLED'), order(ranOut, 'EXPIRED')],
        ...[order(last0, 'PAID'), order(last1, 'PAID')],
      ],
      payments: ['a', 'd', 'e'].map((id) => ({
        ...{ id: `pay-${id}`, reservationId: id, status: 'APPLIED', receivedAt: NOW - 7000 },
      })),
      sales: [{ saleId: 'many', total: 10, sold: 3, paid: 3 }],
    },
    gate: [{ saleId: 'many', stock: 7, held: 3, forfeited: 0, unqueued: 0, open: true }],
    book: captured as unknown as Evidence['book'],
    settled: { afterMs: 100, left: [] as string[], deadLetters: 0 },
    audit: { exitCode: 0, checks: 17, findings: [] as string[] },
    watch: { looks: 50, notConserved: [], cameBack: [] } as Evidence['watch'],
  };
  return evidence satisfies Evidence;
}
type Sound = ReturnType<typeof sound>;

/** The names of the checks that are broken, and of those with something excused. */
function verdict(evidence: Evidence) {
  const checks = judge(evidence);
  const broken = checks.filter(({ findings }) => findings.length > 0).map(({ name }) => name);
  expect(holds(checks)).toBe(broken.length === 0 && checks.every(({ looked }) => looked > 0));
  return { broken, excused: checks.filter(({ excused }) => excused.length > 0).map(({ name }) => name) };
}

const orderOf = ({ ledger }: Sound, id: string) => {
  const found = ledger.orders.find((each) => each.id === id);
  if (!found) throw new Error(`no order ${id}`);
  return found;
};
const without = (evidence: Sound, id: string) => {
  evidence.ledger.orders = evidence.ledger.orders.filter((each) => each.id !== id);
};

test('a sound run is green, and each check has looked at something', () => {
  const checks = judge(sound());
  expect(checks.filter(({ findings, looked }) => findings.length > 0 || looked === 0)).toEqual([]);
  expect(summary(7, [], checks)).toBe('seed 7: green; 0 faults, 5 winners; excused: nothing');
});

/** One thing wrong, and the check that must find it. */
const WRONG: [what: string, by: string, does: (evidence: Sound) => void][] = [
  ['a winner is dropped', 'told_has_order', (e) => without(e, 'c')],
  ['something is left to do', 'settles', (e) => e.settled.left.push('1 orders unpaid')],
  ['the driver itself failed', 'settles', (e) => e.failures.push('visit 3: Error')],
  ['the audit is not content', 'audit_holds', (e) => (e.audit.exitCode = 2)],
  ['the audit could not judge', 'audit_holds', (e) => (e.audit.exitCode = 3)],
  ['an API does not sell any more', 'sells_again', (e) => e.lastBuyers.pop()],
  ['a process ended by itself', 'no_process_gives_up', (e) => e.ownEnds.push('api-1')],
  ['an answer that nobody knows', 'answers_are_known', (e) => e.model.wrongAnswers.push('418')],
  ['an order of another amount', 'order_as_told', (e) => (orderOf(e, 'c').amount += 1)],
  ['an order with another deadline', 'order_as_told', (e) => (orderOf(e, 'c').expiresAt += 1)],
  [
    'an order that nobody asked for',
    'order_was_asked',
    (e) => e.ledger.orders.push(order(told('x', 'eve'), 'EXPIRED')),
  ],
  ['a winner is refused', 'no_winner_refused', (e) => (orderOf(e, 'c').status = 'REJECTED')],
  ['given up, and sold all the same', 'given_up_stays', (e) => (orderOf(e, 'b').status = 'PAID')],
  ['shown as expired, and paid', 'shown_stays', (e) => (orderOf(e, 'c').status = 'PAID')],
  ['a unit is missing', 'units_add_up', (e) => ((e.gate[0] as { stock: number }).stock -= 1)],
  ['a unit too many', 'units_add_up', (e) => ((e.gate[0] as { stock: number }).stock += 1)],
  ['refunded twice', 'money_settled', (e) => ((e.book[0] as { refunded: number }).refunded = 2 * PRICE)],
  ['refunded though it paid an order', 'money_settled', (e) => ((e.book[0] as { refunded: number }).refunded = PRICE)],
  ['money kept for nothing', 'money_settled', (e) => ((e.ledger.payments[0] as { status: string }).status = 'OWED')],
  ['PAID without money', 'money_adds_up', (e) => (orderOf(e, 'c').status = 'PAID')],
  [
    'the wrong money counts',
    'right_money',
    (e) => {
      const made = e.model.payments.get('pay-a');
      if (made) e.model.payments.set('pay-a', { ...made, amount: 1 });
    },
  ],
  ['paid in good time, and expired', 'paid_in_time', (e) => (orderOf(e, 'a').status = 'EXPIRED')],
  [
    'a moment at which the gate did not conserve',
    'gate_always_conserves',
    (e) => e.watch.notConserved.push({ at: NOW, what: '' }),
  ],
  ['a hold came back', 'given_back_stays', (e) => e.watch.cameBack.push({ at: NOW, what: '' })],
];

test.each(WRONG)('%s: %s is broken', (_, by, does) => {
  const evidence = sound();
  does(evidence);
  expect(verdict(evidence).broken).toContain(by);
});

test('every check has something here that breaks it, but the one about who is turned away', () => {
  const names = judge(sound()).map(({ name }) => name);
  expect([...new Set([...WRONG.map(([, by]) => by), 'holder_not_turned_away'])].sort()).toEqual(names.sort());
});

test('nothing to look at is not green', () => {
  const evidence = sound();
  const checks = judge({ ...evidence, watch: { ...evidence.watch, looks: 0 } });
  expect(holds(checks)).toBe(false);
  expect(summary(1, [], checks)).toContain('RED: gate_always_conserves, given_back_stays');
  expect(reportChecks(checks)).toContain('there was nothing to look at');
});

describe('what is excused, and only that', () => {
  const forgot = struck('redis-empty', { forgot: { at: NOW - 9000, since: -Infinity } });
  const lostQueue = struck('queue-empty', { target: 'queue' });

  test('a winner whom gate and queue both forgot, and the run stays green', () => {
    const evidence = sound();
    without(evidence, 'c');
    evidence.model.shown.delete('c');
    evidence.model.shows('b', 'CANCELLED');
    expect(verdict({ ...evidence, struck: [forgot, lostQueue] })).toEqual({ broken: [], excused: ['told_has_order'] });
  });

  test.each([
    ['only the gate forgot', [forgot]],
    ['only the queue forgot', [lostQueue]],
    [
      'the gate forgot before it was won',
      [lostQueue, struck('redis-empty', { forgot: { at: NOW - 11_000, since: -Infinity } })],
    ],
    [
      'the gate forgot long after',
      [lostQueue, struck('redis-empty', { forgot: { at: NOW + 60_000, since: -Infinity } })],
    ],
    ['the gate knew it still', [lostQueue, struck('redis-older', { forgot: { at: NOW - 9000, since: NOW - 9500 } })]],
    ['the queue forgot long after', [forgot, struck('queue-empty', { startedAt: NOW + 60_000 })]],
  ])('a dropped winner is not, when %s', (_, faults) => {
    const evidence = sound();
    without(evidence, 'c');
    expect(verdict({ ...evidence, struck: faults }).broken).toContain('told_has_order');
  });

  test('a refusal after the gate forgot, not one before', () => {
    const evidence = sound();
    orderOf(evidence, 'c').status = 'REJECTED';
    evidence.model.shown.delete('c');
    evidence.model.shows('b', 'CANCELLED');
    expect(
      verdict({ ...evidence, struck: [struck('redis-empty', { forgot: { at: NOW - 9500, since: -Infinity } })] }),
    ).toEqual({
      broken: [],
      excused: ['no_winner_refused'],
    });
    expect(
      verdict({ ...evidence, struck: [struck('redis-empty', { forgot: { at: NOW - 8000, since: -Infinity } })] })
        .broken,
    ).toEqual(['no_winner_refused']);
  });
});

describe('who holds is not told sold_out', () => {
  /** Buyer c was told of a hold three seconds ago, and is told sold_out now. */
  function turnedAway(): Sound {
    const evidence = sound();
    const of = evidence.model.told.get('c');
    if (!of) throw new Error('no c');
    of.firstAt = NOW - 3000;
    evidence.model.soldOut('many', 'buyer-c', NOW - 10);
    return evidence;
  }

  test('is found; excused when the gate forgot in between', () => {
    expect(verdict(turnedAway()).broken).toEqual(['holder_not_turned_away']);
    const forgot = struck('redis-empty', { forgot: { at: NOW - 2000, since: -Infinity } });
    expect(verdict({ ...turnedAway(), struck: [forgot] })).toEqual({ broken: [], excused: ['holder_not_turned_away'] });
  });

  test('not for whoever has just won elsewhere, or gave it up, or was another buyer', () => {
    const fresh = sound();
    fresh.model.soldOut('many', 'buyer-c', Date.now());
    fresh.model.soldOut('many', 'buyer-x', Date.now());
    expect(fresh.model.turnedAway).toEqual([]);
    const gaveUp = turnedAway();
    orderOf(gaveUp, 'c').status = 'CANCELLED';
    gaveUp.model.askedToGiveUp.set('c', NOW - 100);
    expect(verdict(gaveUp).broken).not.toContain('holder_not_turned_away');
  });
});

describe('the model hears', () => {
  test('one reservation told in two ways', () => {
    const model = new Model(NOW);
    model.tells(told('a', 'ann'));
    model.tells(told('a', 'ann'));
    expect(model.wrongAnswers).toEqual([]);
    model.tells({ ...told('a', 'ann'), qty: 2 });
    expect(model.wrongAnswers).toEqual(['a: told qty 1, later 2']);
  });

  test('a final status that changes', () => {
    const model = new Model(NOW);
    for (const status of ['QUEUED', 'PENDING_PAYMENT', 'EXPIRED', 'EXPIRED']) model.shows('a', status);
    expect(model.wrongAnswers).toEqual([]);
    model.shows('a', 'PAID');
    model.shows('a', 'PENDING_PAYMENT');
    expect(model.wrongAnswers).toHaveLength(2);
  });

  test('who decides what becomes of a reservation: the first', () => {
    const model = new Model(NOW);
    expect([model.claim('a'), model.claim('a'), model.claim('b')]).toEqual([true, false, true]);
  });
});
