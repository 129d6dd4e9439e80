/** Ways to break what the checks of payments and refunds check. */
import { type Mutation, payment } from './mutation.ts';
import { id, PRICE } from './sound.ts';

export const ofMoney: Mutation[] = [
  {
    check: 'payment_recorded_once',
    does: 'a payment is there twice',
    sql: `insert into payments select * from payments where payment_id = 'pay-young'`,
    subject: 'pay-young',
  },
  ...[`status = 'LOST'`, `currency = 'eur'`, `amount = -1`].map((change) => ({
    check: 'payment_well_formed',
    does: `a payment has ${change}`,
    sql: `update payments set ${change} where payment_id = 'pay-young';
          update payment_events set currency = p.currency, amount = p.amount from payments p
           where p.payment_id = 'pay-young' and payment_events.payment_id = p.payment_id`,
    subject: 'pay-young',
  })),
  {
    check: 'paid_order_has_one_payment',
    does: 'nobody paid for an order that is PAID',
    sql: `delete from payments where payment_id = 'pay-paid'; delete from payment_events where payment_id = 'pay-paid'`,
    subject: id(2),
  },
  {
    check: 'paid_order_has_one_payment',
    does: 'an order is paid twice',
    sql: payment('pay-again', 2, PRICE, 'APPLIED'),
    subject: id(2),
  },
  {
    check: 'refunded_order_gives_back_its_price',
    does: 'a refunded order’s money is not given back',
    sql: `delete from refunds where payment_id = 'pay-returned'; delete from payments where payment_id = 'pay-returned';
          delete from payment_events where payment_id = 'pay-returned'`,
    subject: id(11),
  },
  {
    check: 'refunded_order_gives_back_its_price',
    does: 'a refunded order gives back money that was never its own',
    sql: `update refunds set reason = 'by_shop' where payment_id = 'pay-before'`,
    subject: id(11),
  },
  {
    check: 'refunded_order_gives_back_its_price',
    does: 'a refunded order gives back less than it cost',
    sql: ['payments', 'payment_events', 'refunds']
      .map((table) => `update ${table} set amount = amount - 1 where payment_id = 'pay-returned'`)
      .join(';'),
    subject: id(11),
  },
  {
    check: 'applied_payment_has_paid_order',
    does: 'the payment of a refunded order is kept',
    sql: payment('pay-kept', 11, PRICE, 'APPLIED'),
    subject: 'pay-kept',
  },
  {
    check: 'applied_payment_has_paid_order',
    does: 'a payment is applied to no order',
    sql: `update payments set status = 'APPLIED' where payment_id = 'pay-young'`,
    subject: 'pay-young',
  },
  {
    check: 'applied_payment_has_paid_order',
    does: 'a payment is applied to an order that expired',
    sql: payment('pay-expired', 4, PRICE, 'APPLIED'),
    subject: 'pay-expired',
  },
  ...[`amount = ${PRICE - 1}`, `currency = 'USD'`].map((change) => ({
    check: 'applied_payment_is_the_price',
    does: `an order is paid with ${change}`,
    sql: `update payments set ${change} where payment_id = 'pay-paid';
          update payment_events set ${change} where payment_id = 'pay-paid'`,
    subject: 'pay-paid',
  })),
  {
    check: 'parked_payment_not_overdue',
    does: 'nobody settles a parked payment',
    sql: `update payments set received_at = now() - interval '1 hour' where payment_id = 'pay-young'`,
    subject: 'pay-young',
  },
  {
    check: 'parked_event_not_overdue',
    does: 'nobody settles a parked event',
    sql: `update payment_events set received_at = now() - interval '1 hour' where event_id = 'event-parked'`,
    subject: 'event-parked',
  },
  {
    check: 'owed_payment_has_one_refund',
    does: 'money is owed and no refund written',
    sql: `delete from refunds where payment_id = 'pay-late'`,
    subject: 'pay-late',
  },
  {
    check: 'owed_payment_has_one_refund',
    does: 'money is given back twice',
    sql: `insert into refunds (payment_id, amount, currency, reason) select payment_id, amount, currency, reason
            from refunds where payment_id = 'pay-late'`,
    subject: 'pay-late',
  },
  {
    check: 'only_owed_payments_are_refunded',
    does: 'the payment of a PAID order is refunded',
    sql: `insert into refunds (payment_id, amount, currency, reason) values ('pay-paid', ${PRICE}, 'EUR', 'already_paid')`,
    subject: 'pay-paid',
  },
  {
    check: 'only_owed_payments_are_refunded',
    does: 'a refund is of no payment',
    sql: `insert into refunds (payment_id, amount, currency, reason) values ('pay-none', 1, 'EUR', 'unknown_reservation')`,
    subject: 'pay-none',
  },
  ...[
    ['refund_not_above_payment', 'amount = amount + 1'],
    ['refund_not_above_payment', `currency = 'USD'`],
    ['refund_in_full', 'amount = amount - 1'],
    ['refund_reason_is_true', `reason = 'rejected'`],
    ['refund_reason_is_true', `reason = 'amount_mismatch'`],
    ['refund_reason_is_true', `reason = 'because'`],
    ['refund_well_formed', `status = 'GONE'`],
    ['refund_not_overdue', `status = 'PENDING', next_attempt_at = now() - interval '1 hour'`],
    ['refund_not_overdue', `status = 'SUBMITTED', next_attempt_at = now() - interval '1 hour'`],
  ].map(([check = '', change = '']) => ({
    check,
    does: `a refund has ${change}`,
    sql: `update refunds set refund_id = '${id(40)}', ${change} where payment_id = 'pay-late'`,
    subject: id(40),
  })),
  ...['by_shop', 'at_provider', 'refunded'].map((reason) => ({
    check: 'refund_reason_is_true',
    does: `a refund is ${reason} of an order that expired`,
    sql: `update refunds set refund_id = '${id(40)}', reason = '${reason}' where payment_id = 'pay-late'`,
    subject: id(40),
  })),
  {
    check: 'payment_has_event',
    does: 'no provider told of a payment',
    sql: `delete from payment_events where payment_id = 'pay-late'`,
    subject: 'pay-late',
  },
  {
    check: 'payment_has_event',
    does: 'a provider told of another amount',
    sql: `update payment_events set amount = 1 where payment_id = 'pay-late'`,
    subject: 'pay-late',
  },
  {
    check: 'event_has_payment',
    does: 'a captured payment was not kept',
    sql: `delete from payments where payment_id = 'pay-young'`,
    subject: 'event-of-pay-young',
  },
];
