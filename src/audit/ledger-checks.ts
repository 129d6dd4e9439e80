/**
 * The checks of one sale that the ledger alone can answer.
 *
 * A check is a query that gives one row for each thing it looks at: `subject`, `ok` and what was `found`; anything but
 * true in `ok` is a finding. `args` has one row: sale_id, overdue_ms, parked_ms. Everything is computed from the rows:
 * no constraint, index or trigger is trusted to have done its work.
 */

/** `says` is the rule in words. */
export type LedgerCheck = { name: string; says: string; sql: string };

/** The sale's journal by reservation. A delta of nothing counts as giving back, so that it is found. */
const ENTRIES_BY_ORDER = `
  entries as (
    select e.reservation_id,
           count(*) filter (where e.delta > 0) as takings, sum(e.delta) filter (where e.delta > 0) as taken,
           string_agg(distinct e.kind, ', ') filter (where e.delta > 0) as taken_as,
           count(*) filter (where e.delta <= 0) as givings, -sum(e.delta) filter (where e.delta <= 0) as given,
           string_agg(distinct e.kind, ', ') filter (where e.delta <= 0) as given_as
      from args join ledger_entries e using (sale_id)
     group by e.reservation_id)`;

/** The live orders are those that own units: PENDING_PAYMENT and PAID. */
export const ledgerChecks: LedgerCheck[] = [
  {
    name: 'sale_has_stock',
    says: 'a sale has one row of stock',
    sql: `
      select s.sale_id as subject, count(k.sale_id) = 1 as ok,
             format('%s rows in sale_stock instead of 1', count(k.sale_id)) as found
        from args join sales s using (sale_id) left join sale_stock k using (sale_id)
       group by s.sale_id`,
  },
  {
    name: 'sold_is_live_orders',
    says: 'sold is the sum of the live orders’ quantities',
    sql: `
      select k.sale_id as subject, k.sold = live.units as ok,
             format('sold is %s, the live orders add up to %s', k.sold, live.units) as found
        from args join sale_stock k using (sale_id), lateral (
          select coalesce(sum(o.qty), 0) as units from sale_orders o
           where o.sale_id = k.sale_id and o.status in ('PENDING_PAYMENT', 'PAID')) live`,
  },
  {
    name: 'sold_within_total',
    says: 'neither sold nor the live orders exceed the total',
    sql: `
      select k.sale_id as subject, greatest(k.sold, live.units) <= k.total as ok,
             format('oversold: of %s units, sold says %s and the live orders have %s', k.total, k.sold, live.units) as found
        from args join sale_stock k using (sale_id), lateral (
          select coalesce(sum(o.qty), 0) as units from sale_orders o
           where o.sale_id = k.sale_id and o.status in ('PENDING_PAYMENT', 'PAID')) live`,
  },
  {
    name: 'one_live_order_per_buyer',
    says: 'a buyer has one live order in a sale',
    sql: `
      select o.user_id as subject, count(*) = 1 as ok,
             format('%s live orders: %s', count(*), string_agg(o.reservation_id::text, ', ' order by o.reservation_id)) as found
        from args join sale_orders o using (sale_id)
       where o.status in ('PENDING_PAYMENT', 'PAID')
       group by o.user_id`,
  },
  {
    name: 'order_well_formed',
    says: 'an order’s quantity, money, times, status, reason, release mark and what became of its units fit together',
    sql: `
      select o.reservation_id::text as subject,
             o.qty >= 1 and o.amount between 0 and 9007199254740991 and o.currency ~ '^[A-Z]{3}$'
               and o.user_id ~ '^[\\x21-\\x7e]{1,128}$' and o.expires_at > o.reserved_at
               and (o.gate_released_at is null or o.status in ('EXPIRED', 'CANCELLED', 'REJECTED', 'REFUNDED'))
               and (o.status = 'REFUNDED') = (o.units_returned is not null)
               and case o.status
                     when 'REJECTED' then o.reason in ('no_room', 'duplicate_buyer')
                     when 'CANCELLED' then o.reason in ('by_buyer', 'payment_canceled')
                     else o.status in ('PENDING_PAYMENT', 'PAID', 'EXPIRED', 'REFUNDED') and o.reason is null end as ok,
             format('%s, reason %s, quantity %s, %s %s, reserved %s, expires %s, released %s, units returned %s', o.status,
               coalesce(o.reason, 'none'), o.qty, o.amount, o.currency, o.reserved_at, o.expires_at,
               coalesce(o.gate_released_at::text, 'not'), coalesce(o.units_returned::text, 'not said')) as found
        from args join sale_orders o using (sale_id)`,
  },
  {
    name: 'live_order_in_sale_currency',
    says: 'a live order is in its sale’s currency',
    sql: `
      select o.reservation_id::text as subject, o.currency = s.currency as ok,
             format('the order is in %s, the sale in %s', o.currency, s.currency) as found
        from args join sales s using (sale_id) join sale_orders o using (sale_id)
       where o.status in ('PENDING_PAYMENT', 'PAID')`,
  },
  {
    name: 'pending_order_not_overdue',
    says: 'an unpaid order is expired soon after its deadline',
    sql: `
      select o.reservation_id::text as subject, o.expires_at > now() - args.overdue_ms * interval '1 ms' as ok,
             format('still PENDING_PAYMENT, though it expired at %s: is a keeper running?', o.expires_at) as found
        from args join sale_orders o using (sale_id)
       where o.status = 'PENDING_PAYMENT'`,
  },
  {
    name: 'duplicate_refusal_names_an_order',
    says: 'a buyer refused as a duplicate has had the other order that is named',
    sql: `
      select o.reservation_id::text as subject, bool_or(l.reservation_id is not null) as ok,
             format('refused because of order %s, which is not one of this buyer’s that was ever live',
               coalesce(o.live_reservation_id::text, 'none')) as found
        from args join sale_orders o using (sale_id)
        left join sale_orders l on l.reservation_id = o.live_reservation_id and l.sale_id = o.sale_id
             and l.user_id = o.user_id and l.status <> 'REJECTED' and l.reservation_id <> o.reservation_id
       where o.status = 'REJECTED' and o.reason = 'duplicate_buyer'
       group by o.reservation_id, o.live_reservation_id`,
  },
  {
    name: 'journal_sums_to_sold',
    says: 'the journal’s deltas add up to sold',
    sql: `
      select k.sale_id as subject, k.sold = journal.units as ok,
             format('sold is %s, the journal adds up to %s', k.sold, journal.units) as found
        from args join sale_stock k using (sale_id), lateral (
          select coalesce(sum(e.delta), 0) as units from ledger_entries e where e.sale_id = k.sale_id) journal`,
  },
  {
    name: 'order_taken_once',
    says: 'an order that was ever live took its quantity once; a refused one took nothing',
    sql: `with ${ENTRIES_BY_ORDER}
      select o.reservation_id::text as subject,
             case when o.status = 'REJECTED' then coalesce(e.takings, 0) = 0
                  when o.status = 'CANCELLED' and coalesce(e.takings, 0) = 0 then true
                  else e.takings = 1 and e.taken = o.qty and e.taken_as = 'order' end as ok,
             format('%s with quantity %s: %s takings, of %s units, as %s', o.status, o.qty, coalesce(e.takings, 0),
               coalesce(e.taken, 0), coalesce(e.taken_as, 'nothing')) as found
        from args join sale_orders o using (sale_id) left join entries e using (reservation_id)`,
  },
  {
    name: 'order_given_back_once',
    says: 'an order that ended or was refunded gave back what it took, once; a live or refused one gave back nothing',
    sql: `with ${ENTRIES_BY_ORDER}
      select o.reservation_id::text as subject,
             case when o.status = 'EXPIRED' then e.givings = 1 and e.given = o.qty and e.given_as = 'expiry'
                  when o.status = 'CANCELLED' and coalesce(e.takings, 0) > 0
                    then e.givings = 1 and e.given = o.qty and e.given_as = 'cancel'
                  when o.status = 'REFUNDED' then e.givings = 1 and e.given = o.qty and e.given_as = 'refund'
                  else coalesce(e.givings, 0) = 0 end as ok,
             format('%s with quantity %s: %s givings back, of %s units, as %s, after %s takings', o.status, o.qty,
               coalesce(e.givings, 0), coalesce(e.given, 0), coalesce(e.given_as, 'nothing'), coalesce(e.takings, 0)) as found
        from args join sale_orders o using (sale_id) left join entries e using (reservation_id)`,
  },
];

/** For a closed sale only. */
export const closedSaleCheck: LedgerCheck = {
  name: 'closed_sale_has_nothing_pending',
  says: 'a closed sale’s orders are paid or finished',
  sql: `
    select o.reservation_id::text as subject, o.status <> 'PENDING_PAYMENT' as ok,
           'PENDING_PAYMENT in a sale that is closed: it has no gate to give its units back to' as found
      from args join sale_orders o using (sale_id)`,
};

/** For a sale only whose gate was never opened. */
export const unopenedSaleCheck: LedgerCheck = {
  name: 'unopened_sale_has_no_orders',
  says: 'a sale that was never opened has no orders',
  sql: `
    select s.sale_id as subject, count(o.*) = 0 as ok,
           format('%s orders, though the sale was never opened', count(o.*)) as found
      from args join sales s using (sale_id) left join sale_orders o using (sale_id)
     group by s.sale_id`,
};
