/** The checks of webhooks out to the shop. See ledger-checks.ts for what a check is. */
import type { LedgerCheck } from './ledger-checks.ts';

/**
 * Of one sale. A transaction that had begun before the endpoint was there may end an order without announcing it, so the
 * first minutes (overdue_ms) of what the endpoint calls complete are not judged.
 */
export const announcedCheck: LedgerCheck = {
  name: 'order_is_announced',
  says: 'an order that came into a status which an endpoint wants to hear of has its event for that endpoint',
  sql: `
    select e.endpoint_id || ' ' || o.reservation_id as subject, bool_or(d.event_id is not null) as ok,
           format('%s since %s, and no event of it for endpoint %s', o.status, o.changed_at, e.endpoint_id) as found
      from args join sale_orders o using (sale_id)
      join webhook_endpoints e on e.active and 'reservation.' || lower(o.status) = any(e.events)
           and o.changed_at > e.complete_since + args.overdue_ms * interval '1 ms'
      left join webhook_deliveries d on d.endpoint_key = e.endpoint_key
           and d.event_id = o.reservation_id || '_' || lower(o.status)
           and d.payload->'data'->>'reservationId' = o.reservation_id::text and d.payload->'data'->>'status' = o.status
     group by e.endpoint_id, o.reservation_id, o.status, o.changed_at`,
};

/** Of no sale. Slow or dead endpoints have a backlog; what must not be is that nobody tries. */
export const servedCheck: LedgerCheck = {
  name: 'endpoint_is_served',
  says: 'an endpoint for which webhooks are due is tried',
  sql: `
    select e.endpoint_id as subject,
           max(d.updated_at) filter (where d.attempts > 0) > now() - args.overdue_ms * interval '1 ms'
             or not bool_or(d.status = 'PENDING'
               and greatest(d.next_attempt_at, d.claimed_until, e.hold_until) <= now() - args.overdue_ms * interval '1 ms') as ok,
           format('%s are to be sent, and the last attempt was at %s: is a keeper running?',
             count(*) filter (where d.status = 'PENDING'), coalesce(max(d.updated_at) filter (where d.attempts > 0)::text, 'no time')) as found
      from args cross join webhook_endpoints e join webhook_deliveries d using (endpoint_key)
     where e.active and args.sale_id is null
     group by e.endpoint_key, e.endpoint_id, args.overdue_ms`,
};
