/** Ways to break what the checks of pages to pay on check. */
import type { Mutation } from './mutation.ts';
import { id, young } from './sound.ts';

const set = (what: string, of: string) => `update checkout_pages set ${what} where reservation_id = '${of}'`;
const ORDER_ENDED_LONG_AGO = (of: string) =>
  `update sale_orders set changed_at = now() - interval '1 hour' where reservation_id = '${of}'`;

export const ofPages: Mutation[] = [
  {
    check: 'reservation_has_one_page',
    does: 'a reservation has a second page, on which it could be paid twice',
    sql: `insert into checkout_pages (reservation_id, sale_id, hold_expires_at, expires_at, session_id, url)
          select reservation_id, sale_id, hold_expires_at, expires_at, 'another', url from checkout_pages where reservation_id = '${id(1)}'`,
    subject: id(1),
  },
  {
    check: 'reservation_has_one_page',
    does: 'two reservations lead to one page',
    sql: set(`session_id = 'page-${id(1)}'`, young.id),
    subject: young.id,
  },
  {
    check: 'page_well_formed',
    does: 'a page has a name and no address',
    sql: set('url = null', id(1)),
    subject: id(1),
  },
  {
    check: 'page_well_formed',
    does: 'a page is closed that was never made',
    sql: set('closed_at = now()', id(8)),
    subject: id(8),
  },
  {
    check: 'page_is_of_its_order',
    does: 'a page is of another sale than its order',
    sql: set(`sale_id = 'quiet'`, id(1)),
    subject: id(1),
  },
  {
    check: 'page_is_of_its_order',
    does: 'a page thinks that its hold lasts longer than it does',
    sql: set(`hold_expires_at = hold_expires_at + interval '1 second'`, id(1)),
    subject: id(1),
  },
  {
    check: 'page_not_left_open',
    does: 'an order is paid since an hour, and its page is open',
    sql: ORDER_ENDED_LONG_AGO(id(3)),
    subject: id(3),
  },
  {
    check: 'page_not_left_open',
    does: 'the provider was to be asked again an hour ago',
    sql: `${ORDER_ENDED_LONG_AGO(id(2))}; ${set('closed_at = null, attempts = 3', id(2))}`,
    subject: id(2),
  },
  {
    check: 'page_not_left_open',
    does: 'a hold that became no order is over since an hour, and its page is open',
    sql: set(`hold_expires_at = now() - interval '1 hour'`, young.id),
    subject: young.id,
  },
  {
    check: 'page_not_closed_early',
    does: 'the page of an order that may still be paid is closed',
    sql: set('closed_at = now()', id(1)),
    subject: id(1),
  },
  {
    check: 'page_not_closed_early',
    does: 'a page is closed while its hold waits in the queue',
    sql: set('closed_at = now()', young.id),
    subject: young.id,
  },
];
