/** docs/payment.md says of each of Stripe’s events what it is taken as, and of each reason why money is given back. */
import { expect, test } from 'vitest';
import { PaymentEventType } from '../../src/domain/payment.ts';
import { codeIn, docAt, read, tableOf } from './documents.ts';

const doc = docAt('docs/payment.md');

test('the table of Stripe’s events has each that is understood, and no other', () => {
  const rows = tableOf(doc, "Stripe's event", 'is taken as');
  const told = rows.flatMap(([event = '']) => codeIn(event));
  const source = read('src/provider/stripe-events.ts');
  const understood = [...source.matchAll(/case '([a-z_]+\.[a-z_.]+)':/g)].map(([, event = '']) => event);
  expect(understood.length).toBeGreaterThan(5);
  expect(told.toSorted()).toEqual(understood.sort());
  for (const [event = '', takenAs = ''] of rows) expect(PaymentEventType.options, event).toContain(codeIn(takenAs)[0]);
});

test('each reason of a refund is in the table of what happens to money', () => {
  const told = new Set(tableOf(doc, 'it comes', 'the order', 'the money').flatMap(([, , money = '']) => codeIn(money)));
  const [, list = ''] = /check \(reason in \(([^)]*)\)/.exec(read('migrations/0003_refunded.sql')) ?? [];
  const reasons = [...list.matchAll(/'(\w+)'/g)].map(([, reason = '']) => reason);
  expect(reasons.length).toBeGreaterThan(6);
  expect([...told].sort()).toEqual(reasons.sort());
});
