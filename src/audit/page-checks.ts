/**
 * The checks of pages on which reservations are paid, `checkout_pages`. Over everything, or over one sale when
 * `args.sale_id` says so. Form: see ledger-checks.ts. A page whose reservation has no order is no finding: its hold may be
 * in the queue still, and one that was lost is for the checks of holds.
 */
import type { LedgerCheck } from './ledger-checks.ts';

/** Pages in scope, each with its order if there is one. */
const SCOPED_PAGES = `
  scoped as (
    select p.*, o.status, o.sale_id as order_sale, o.expires_at as order_expires_at, o.changed_at
      from args cross join checkout_pages p left join sale_orders o using (reservation_id)
     where args.sale_id is null or p.sale_id = args.sale_id)`;

export const pageChecks: LedgerCheck[] = [
  {
    name: 'reservation_has_one_page',
    says: 'a reservation has one page to pay on, and a page is one reservation’s',
    sql: `
      select reservation_id::text as subject, max(same) = 1 and max(sharing) <= 1 as ok,
             format('%s pages of this reservation, %s reservations with a page of the same name', max(same), max(sharing)) as found
        from args, (select p.reservation_id, p.sale_id, count(*) over (partition by p.reservation_id) as same,
                           count(p.session_id) over (partition by p.session_id) as sharing from checkout_pages p) pages
       where args.sale_id is null or pages.sale_id = args.sale_id
       group by reservation_id`,
  },
  {
    name: 'page_well_formed',
    says: 'a page that was made has the provider’s name and an address, and only such a one is closed',
    sql: `with ${SCOPED_PAGES}
      select reservation_id::text as subject,
             (session_id is null) = (url is null) and (closed_at is null or session_id is not null) as ok,
             format('name %s, address %s, closed %s', coalesce(session_id, 'none'), coalesce(url, 'none'),
               coalesce(closed_at::text, 'not')) as found
        from scoped`,
  },
  {
    name: 'page_is_of_its_order',
    says: 'a page is of its order’s sale, and for the time of its hold',
    sql: `with ${SCOPED_PAGES}
      select reservation_id::text as subject,
             sale_id = order_sale and abs(extract(epoch from hold_expires_at - order_expires_at)) < 0.001 as ok,
             format('of sale %s until %s, the order is of sale %s until %s', sale_id, hold_expires_at, order_sale, order_expires_at) as found
        from scoped where status is not null`,
  },
  {
    // One that the provider has let expire is paid by nobody; and a shop that changed its provider has nobody to close it.
    name: 'page_not_left_open',
    says: 'a page whose hold is paid or over is closed at the provider soon, while it could be paid on',
    sql: `with ${SCOPED_PAGES}
      select reservation_id::text as subject,
             closed_at is not null or expires_at <= now()
               or greatest(next_attempt_at, case when status is null then hold_expires_at else changed_at end)
                  > now() - args.overdue_ms * interval '1 ms' as ok,
             format('%s, its page is open until %s, and %s attempts were made to close it: is a keeper running?',
               coalesce(status, 'no order'), expires_at, attempts) as found
        from args, scoped
       where session_id is not null and (status <> 'PENDING_PAYMENT' or status is null and hold_expires_at <= now())`,
  },
  {
    name: 'page_not_closed_early',
    says: 'a page stays open as long as its hold may be paid',
    sql: `with ${SCOPED_PAGES}
      select reservation_id::text as subject, closed_at >= hold_expires_at as ok,
             format('closed at %s, though its hold is unpaid and lasts until %s', closed_at, hold_expires_at) as found
        from scoped where closed_at is not null and coalesce(status, 'PENDING_PAYMENT') = 'PENDING_PAYMENT'`,
  },
];
