/** Pages on which reservations are paid: planned before they are asked for, remembered, and closed when the hold ends. */
import type { Hold } from '../domain/reservation.ts';
import { query, type Queryable } from './db.ts';

/** `session` is missing until the provider has answered. Times in epoch milliseconds. */
export type Page = { expiresAt: number; session: { sessionId: string; url: string } | null };

// One that was never made may be planned anew once the provider would not take its end any more. Its end is in whole
// seconds, as providers count.
const PLAN = {
  name: 'plan-page',
  text: `
    insert into checkout_pages as page (reservation_id, sale_id, hold_expires_at, expires_at)
    values ($1, $2, to_timestamp($3 / 1000.0), date_trunc('second',
      least(greatest(to_timestamp($3 / 1000.0), now() + $4 * interval '1 ms'), now() + $5 * interval '1 ms')))
    on conflict (reservation_id) do update set expires_at = case
      when page.session_id is null and page.expires_at < now() + ($4 - $6) * interval '1 ms' then excluded.expires_at
      else page.expires_at end
    returning (extract(epoch from expires_at) * 1000)::bigint as "expiresAt", session_id as "sessionId", url`,
};

/**
 * The page of a reservation, as it is or as it is to be asked for: the same for whoever asks at the same time.
 * @param life how long from now a page may live; `slackMs`: for how long the same question may be asked again
 */
export async function planPage(
  db: Queryable,
  { reservationId, saleId, expiresAt }: Pick<Hold, 'reservationId' | 'saleId' | 'expiresAt'>,
  life: { shortestMs: number; longestMs: number },
  slackMs: number,
): Promise<Page> {
  const values = [reservationId, saleId, expiresAt, life.shortestMs, life.longestMs, slackMs];
  const [row] = await query<{ expiresAt: number; sessionId: string | null; url: string | null }>(db, PLAN, values);
  if (!row) throw new Error(`no page was planned for ${reservationId}`);
  const { sessionId, url } = row;
  return { expiresAt: row.expiresAt, session: sessionId !== null && url !== null ? { sessionId, url } : null };
}

const MADE = {
  name: 'page-made',
  text: `update checkout_pages set session_id = $2, url = $3 where reservation_id = $1 and session_id is null`,
};

export async function pageMade(
  db: Queryable,
  reservationId: string,
  { sessionId, url }: { sessionId: string; url: string },
): Promise<void> {
  await query(db, MADE, [reservationId, sessionId, url]);
}

/** A page whose hold is over. `attempts` counts this one. */
export type PageToClose = { reservationId: string; sessionId: string; attempts: number };

// Claimed by moving its next attempt on, as refunds are. Over: the order is paid or has ended; without an order, the
// time of the hold is over by the database's clock.
const CLAIM = {
  name: 'claim-pages',
  text: `
    update checkout_pages set attempts = attempts + 1,
      next_attempt_at = now() + least($1 * 2 ^ least(attempts, 20), 3600000) * interval '1 millisecond'
    where reservation_id in (
      select page.reservation_id from checkout_pages page left join sale_orders o using (reservation_id)
      where page.session_id is not null and page.closed_at is null and page.next_attempt_at <= now()
        and (o.status <> 'PENDING_PAYMENT' or o.status is null and page.hold_expires_at <= now())
      order by page.next_attempt_at limit $2 for update of page skip locked)
    returning reservation_id as "reservationId", session_id as "sessionId", attempts`,
};

/** Takes pages that are to be closed. @param backoffMs longer than one call to the provider may take */
export async function claimPages(db: Queryable, backoffMs: number, limit: number): Promise<PageToClose[]> {
  return query<PageToClose>(db, CLAIM, [backoffMs, limit]);
}

const CLOSED = {
  name: 'pages-closed',
  text: `update checkout_pages set closed_at = now() where reservation_id = any($1::uuid[]) and closed_at is null`,
};

export async function pagesClosed(db: Queryable, reservationIds: string[]): Promise<void> {
  if (reservationIds.length > 0) await query(db, CLOSED, [reservationIds]);
}
