/**
 * The checks of payments and refunds, and of what belongs to no sale. They are carried out once, over everything, or
 * over one sale when `args.sale_id` says so: a payment belongs to the sale of its order. Form: see ledger-checks.ts.
 */
import type { LedgerCheck } from './ledger-checks.ts';

/** Payments in scope, each with its order if there is one. */
const SCOPED_PAYMENTS = `
  scoped as (
    select p.payment_id, p.reservation_id, p.amount, p.currency, p.status, p.received_at,
           o.status as order_status, o.amount as order_amount, o.currency as order_currency
      from args cross join payments p left join sale_orders o on o.reservation_id::text = p.reservation_id
     where args.sale_id is null or o.sale_id = args.sale_id)`;

/** Refunds in scope, each with its payment and that one's order if there are such. */
const SCOPED_REFUNDS = `
  scoped as (
    select r.refund_id, r.payment_id, r.amount, r.currency, r.reason, r.status, r.next_attempt_at,
           p.status as payment_status, p.amount as payment_amount, p.currency as payment_currency,
           o.status as order_status, o.amount as order_amount, o.currency as order_currency
      from args cross join refunds r left join payments p using (payment_id)
      left join sale_orders o on o.reservation_id::text = p.reservation_id
     where args.sale_id is null or o.sale_id = args.sale_id)`;

export const moneyChecks: LedgerCheck[] = [
  {
    name: 'order_recorded_once',
    says: 'a reservation is one order',
    sql: `
      select o.reservation_id::text as subject, count(*) = 1 as ok,
             format('%s orders, in %s', count(*), string_agg(distinct o.sale_id, ', ')) as found
        from args cross join sale_orders o
       group by o.reservation_id, args.sale_id
      having args.sale_id is null or bool_or(o.sale_id = args.sale_id)`,
  },
  {
    name: 'payment_recorded_once',
    says: 'a payment id is one payment',
    sql: `with ${SCOPED_PAYMENTS}
      select payment_id as subject, count(*) = 1 as ok, format('%s rows in payments', count(*)) as found
        from scoped group by payment_id`,
  },
  {
    name: 'payment_well_formed',
    says: 'a payment’s amount, currency and status are possible ones',
    sql: `with ${SCOPED_PAYMENTS}
      select payment_id as subject,
             status in ('PARKED', 'APPLIED', 'OWED') and amount between 0 and 9007199254740991
               and currency ~ '^[A-Z]{3}$' as ok,
             format('%s of %s %s', status, amount, currency) as found
        from scoped`,
  },
  {
    name: 'paid_order_has_one_payment',
    says: 'a PAID order has exactly one captured payment',
    sql: `
      select o.reservation_id::text as subject, count(p.payment_id) = 1 as ok,
             format('PAID with %s APPLIED payments instead of 1%s', count(p.payment_id),
               coalesce(': ' || string_agg(p.payment_id, ', ' order by p.payment_id), '')) as found
        from args cross join sale_orders o
        left join payments p on p.reservation_id = o.reservation_id::text and p.status = 'APPLIED'
       where o.status = 'PAID' and (args.sale_id is null or o.sale_id = args.sale_id)
       group by o.reservation_id`,
  },
  {
    name: 'refunded_order_gives_back_its_price',
    says: 'a REFUNDED order’s own payment, of its amount and currency, is given back for that reason, once',
    sql: `
      select o.reservation_id::text as subject,
             count(r.refund_id) = 1 and bool_and(p.amount = o.amount and p.currency = o.currency) as ok,
             format('REFUNDED, %s %s, with %s refunds for that reason instead of 1%s', o.amount, o.currency, count(r.refund_id),
               coalesce(': ' || string_agg(format('%s %s', p.amount, p.currency), ', '), '')) as found
        from args cross join sale_orders o
        left join (payments p join refunds r on r.payment_id = p.payment_id and r.reason in ('by_shop', 'at_provider'))
          on p.reservation_id = o.reservation_id::text
       where o.status = 'REFUNDED' and (args.sale_id is null or o.sale_id = args.sale_id)
       group by o.reservation_id, o.amount, o.currency`,
  },
  {
    name: 'applied_payment_has_paid_order',
    says: 'an APPLIED payment’s order is PAID',
    sql: `with ${SCOPED_PAYMENTS}
      select payment_id as subject, order_status = 'PAID' as ok,
             format('APPLIED to reservation %s, whose order is %s', reservation_id, coalesce(order_status, 'not there')) as found
        from scoped where status = 'APPLIED'`,
  },
  {
    name: 'applied_payment_is_the_price',
    says: 'an APPLIED payment is of its order’s amount and currency',
    sql: `with ${SCOPED_PAYMENTS}
      select payment_id as subject, amount = order_amount and currency = order_currency as ok,
             format('%s %s was captured for order %s of %s %s', amount, currency, reservation_id, order_amount, order_currency) as found
        from scoped where status = 'APPLIED' and order_status is not null`,
  },
  {
    name: 'parked_payment_not_overdue',
    says: 'a PARKED payment is settled soon after its grace',
    sql: `with ${SCOPED_PAYMENTS}
      select payment_id as subject, received_at > now() - args.parked_ms * interval '1 ms' as ok,
             format('PARKED since %s for reservation %s (its order: %s): is a keeper running?', received_at,
               reservation_id, coalesce(order_status, 'none')) as found
        from args, scoped where status = 'PARKED'`,
  },
  {
    name: 'owed_payment_has_one_refund',
    says: 'a payment that is owed back has exactly one refund',
    sql: `with ${SCOPED_PAYMENTS}
      select s.payment_id as subject, count(r.refund_id) = 1 as ok,
             format('OWED %s %s with %s refunds instead of 1', s.amount, s.currency, count(r.refund_id)) as found
        from scoped s left join refunds r using (payment_id)
       where s.status = 'OWED'
       group by s.payment_id, s.amount, s.currency`,
  },
  {
    name: 'only_owed_payments_are_refunded',
    says: 'a refund is of a payment that is owed back',
    sql: `with ${SCOPED_REFUNDS}
      select payment_id as subject, payment_status = 'OWED' as ok,
             format('refund %s is of a payment that is %s', refund_id, coalesce(payment_status, 'not there')) as found
        from scoped`,
  },
  {
    name: 'refund_not_above_payment',
    says: 'a refund is in its payment’s currency and not above its amount',
    sql: `with ${SCOPED_REFUNDS}
      select refund_id::text as subject, amount <= payment_amount and currency = payment_currency as ok,
             format('gives back %s %s of payment %s, which captured %s %s', amount, currency, payment_id, payment_amount,
               payment_currency) as found
        from scoped where payment_status is not null`,
  },
  {
    name: 'refund_in_full',
    says: 'a refund is not below its payment’s amount',
    sql: `with ${SCOPED_REFUNDS}
      select refund_id::text as subject, amount >= payment_amount as ok,
             format('gives back only %s of the %s that payment %s captured', amount, payment_amount, payment_id) as found
        from scoped where payment_status is not null`,
  },
  {
    name: 'refund_reason_is_true',
    says: 'a refund’s reason is true of the payment’s order',
    sql: `with ${SCOPED_REFUNDS}
      select refund_id::text as subject,
             case reason when 'expired' then order_status = 'EXPIRED'
                         when 'cancelled' then order_status = 'CANCELLED'
                         when 'rejected' then order_status = 'REJECTED'
                         when 'already_paid' then order_status in ('PAID', 'REFUNDED') -- refunded since
                         when 'by_shop' then order_status = 'REFUNDED'
                         when 'at_provider' then order_status = 'REFUNDED'
                         when 'refunded' then order_status = 'REFUNDED'
                         when 'amount_mismatch'
                           then payment_amount <> order_amount or payment_currency <> order_currency
                         when 'unknown_reservation' then true -- the order may have come after the grace was over
                         else false end as ok,
             format('refund of payment %s for reason %s, but the order is %s', payment_id, reason,
               coalesce(order_status, 'not there')) as found
        from scoped`,
  },
  {
    name: 'refund_well_formed',
    says: 'a refund’s status is a possible one',
    sql: `with ${SCOPED_REFUNDS}
      select refund_id::text as subject, status in ('PENDING', 'SUBMITTED', 'SUCCEEDED', 'FAILED') as ok,
             format('status %s', status) as found
        from scoped`,
  },
  {
    name: 'refund_not_overdue',
    says: 'the provider is asked for a refund, or about it, when that is due',
    sql: `with ${SCOPED_REFUNDS}
      select refund_id::text as subject, next_attempt_at > now() - args.overdue_ms * interval '1 ms' as ok,
             format('of payment %s, due since %s: is a keeper running?', payment_id, next_attempt_at) as found
        from args, scoped where status in ('PENDING', 'SUBMITTED')`,
  },
  {
    name: 'payment_has_event',
    says: 'a payment is what a provider’s event said',
    sql: `with ${SCOPED_PAYMENTS}
      select s.payment_id as subject, bool_or(e.event_id is not null) as ok,
             format('no payment.succeeded event says %s %s for reservation %s', s.amount, s.currency, s.reservation_id) as found
        from scoped s
        left join payment_events e on e.type = 'payment.succeeded' and e.payment_id = s.payment_id
             and e.reservation_id = s.reservation_id and e.amount = s.amount and e.currency = s.currency
       group by s.payment_id, s.reservation_id, s.amount, s.currency`,
  },
  {
    name: 'event_has_payment',
    says: 'each captured payment that a provider reported is there',
    sql: `
      select e.event_id as subject, bool_or(p.payment_id is not null) as ok,
             format('the provider captured payment %s for reservation %s, and there is no such payment', e.payment_id,
               e.reservation_id) as found
        from args cross join payment_events e left join payments p using (payment_id)
        left join sale_orders o on o.reservation_id::text = e.reservation_id
       where e.type = 'payment.succeeded' and (args.sale_id is null or o.sale_id = args.sale_id)
       group by e.event_id, e.payment_id, e.reservation_id`,
  },
  {
    name: 'parked_event_not_overdue',
    says: 'a parked event is settled soon after its grace',
    sql: `
      select e.event_id as subject, e.received_at > now() - args.parked_ms * interval '1 ms' as ok,
             format('%s, parked since %s for reservation %s: is a keeper running?', e.type, e.received_at, e.reservation_id) as found
        from args cross join payment_events e left join sale_orders o on o.reservation_id::text = e.reservation_id
       where e.state = 'parked' and (args.sale_id is null or o.sale_id = args.sale_id)`,
  },
  {
    name: 'journal_entry_has_order',
    says: 'a journal entry is of an order of the same sale',
    sql: `
      select e.entry_id::text as subject, bool_or(o.reservation_id is not null) as ok,
             format('%s of %s units in sale %s for reservation %s, which is no order of it', e.kind, e.delta, e.sale_id,
               e.reservation_id) as found
        from args cross join ledger_entries e
        left join sale_orders o on o.reservation_id = e.reservation_id and o.sale_id = e.sale_id
       where args.sale_id is null or e.sale_id = args.sale_id
       group by e.entry_id, e.kind, e.delta, e.sale_id, e.reservation_id`,
  },
];

/** For an audit of all sales only: with one sale asked for, there is nothing that it could find. */
export const strayOrderCheck: LedgerCheck = {
  name: 'order_has_sale',
  says: 'an order is of a sale that exists',
  sql: `
    select o.reservation_id::text as subject, s.sale_id is not null as ok,
           format('order of sale %s, which does not exist', o.sale_id) as found
      from args cross join sale_orders o left join sales s on s.sale_id = o.sale_id
     where args.sale_id is null`,
};
