/** Ways to break what the ledger's checks of one sale check. */
import { type Mutation, payment } from './mutation.ts';
import { HOLD_MS, hold, id, key, PRICE, reservedAt } from './sound.ts';

const LATE = reservedAt - 2 * HOLD_MS;

const entry = (n: number, delta: number) =>
  `insert into ledger_entries (entry_id, sale_id, reservation_id, kind, delta) overriding system value
   values (${9000 + n + delta}, 'live', '${id(n)}', '${delta > 0 ? 'order' : 'cancel'}', ${delta});`;

export const ofSale: Mutation[] = [
  {
    check: 'sale_has_stock',
    does: 'a sale loses its stock',
    sql: `delete from sale_stock where sale_id = 'unopened'`,
    subject: 'unopened',
  },
  {
    check: 'sold_is_live_orders',
    does: 'sold is one too many',
    sql: `update sale_stock set sold = sold + 1 where sale_id = 'closed'`,
    subject: 'closed',
    alsoRed: ['journal_sums_to_sold'],
  },
  {
    check: 'sold_within_total',
    does: 'more is sold than there is',
    sql: `update sale_stock set total = 1 where sale_id = 'closed'`,
    subject: 'closed',
  },
  {
    check: 'one_live_order_per_buyer',
    does: 'a buyer gets a second paid order',
    orders: [{ id: id(20), sale: 'closed', user: 'ann', qty: 1, status: 'PAID' }],
    sql: `update sale_stock set sold = 3 where sale_id = 'closed'; ${payment('pay-20', 20, PRICE, 'APPLIED')}`,
    subject: 'ann',
  },
  {
    check: 'order_recorded_once',
    does: 'an order is there twice',
    sql: `insert into sale_orders select * from sale_orders where reservation_id = '${id(6)}'`,
    subject: id(6),
  },
  {
    check: 'order_recorded_once',
    does: 'an order is in two sales',
    orders: [{ id: id(6), sale: 'quiet', user: 'fay', qty: 1, status: 'CANCELLED', reason: 'by_buyer', untaken: true }],
    subject: id(6),
  },
  ...[
    ['a cancelled order has no reason', `reason = null where reservation_id = '${id(6)}'`, id(6)],
    [
      'a refunded order does not say what became of its units',
      `units_returned = null where reservation_id = '${id(11)}'`,
      id(11),
    ],
    [
      'a paid order says that its units were returned',
      `units_returned = true where reservation_id = '${id(2)}'`,
      id(2),
    ],
    ['a paid order has a reason', `reason = 'no_room' where reservation_id = '${id(2)}'`, id(2)],
    ['a live order is marked as released', `gate_released_at = now() where reservation_id = '${id(2)}'`, id(2)],
    ['an order ends before it begins', `expires_at = reserved_at where reservation_id = '${id(4)}'`, id(4)],
    ['a buyer’s name cannot be one', `user_id = 'a b' where reservation_id = '${id(4)}'`, id(4)],
    ['an amount is below zero', `amount = -1 where reservation_id = '${id(6)}'`, id(6)],
  ].map(([does = '', change = '', subject = '']) => {
    return { check: 'order_well_formed', does, sql: `update sale_orders set ${change}`, subject };
  }),
  {
    check: 'live_order_in_sale_currency',
    does: 'a sale changes its currency under an order',
    sql: `update sales set currency = 'USD' where sale_id = 'closed'`,
    subject: id(9),
  },
  {
    check: 'pending_order_not_overdue',
    does: 'nobody expires an order',
    sql: `update sale_orders set reserved_at = to_timestamp(${LATE} / 1000.0), expires_at = to_timestamp(${LATE + HOLD_MS} / 1000.0)
           where reservation_id = '${id(1)}'`,
    redis: [['HSET', key('holds'), 'ann', hold({ id: id(1), qty: 2 }, { at: LATE })]],
    subject: id(1),
    alsoRed: ['page_is_of_its_order'],
  },
  {
    check: 'duplicate_refusal_names_an_order',
    does: 'a buyer is refused for another’s order',
    sql: `update sale_orders set live_reservation_id = '${id(3)}' where reservation_id = '${id(8)}'`,
    subject: id(8),
  },
  {
    check: 'journal_sums_to_sold',
    does: 'the journal has an entry too many',
    sql: entry(50, 1),
    subject: 'live',
    alsoRed: ['journal_entry_has_order'],
  },
  {
    check: 'journal_entry_has_order',
    does: 'the journal has two entries of no order that cancel out',
    sql: entry(50, 1) + entry(50, -1),
    subject: '9051',
  },
  ...['closed', 'nowhere'].map((sale) => ({
    check: 'journal_entry_has_order',
    does: `entries of a refused order that cancel out are of ${sale === 'closed' ? 'another sale' : 'a sale that there is not'}`,
    sql: `insert into ledger_entries (entry_id, sale_id, reservation_id, kind, delta) overriding system value
          values (9100, '${sale}', '${id(7)}', 'order', 1), (9101, '${sale}', '${id(7)}', 'cancel', -1)`,
    subject: '9100',
  })),
  {
    check: 'order_taken_once',
    does: 'one order takes less, another takes more',
    sql: `update ledger_entries set delta = case reservation_id when '${id(1)}' then 1 else 2 end
           where reservation_id in ('${id(1)}', '${id(2)}')`,
    subject: id(1),
  },
  {
    check: 'order_taken_once',
    does: 'an order takes as an expiry',
    sql: `update ledger_entries set kind = 'expiry' where reservation_id = '${id(1)}'`,
    subject: id(1),
  },
  {
    check: 'order_taken_once',
    does: 'a refused order took and gave back',
    sql: entry(7, 1) + entry(7, -1),
    subject: id(7),
    alsoRed: ['order_given_back_once'],
  },
  {
    check: 'order_taken_once',
    does: 'an expired order took nothing and gave back nothing',
    sql: `delete from ledger_entries where reservation_id = '${id(4)}'`,
    subject: id(4),
    alsoRed: ['order_given_back_once'],
  },
  {
    check: 'order_given_back_once',
    does: 'one order gives back more, another gives back less',
    sql: `update ledger_entries set delta = case reservation_id when '${id(4)}' then -2 else -1 end
           where reservation_id in ('${id(4)}', '${id(5)}') and delta < 0`,
    subject: id(4),
  },
  {
    check: 'order_given_back_once',
    does: 'an expired order gives back as a cancellation',
    sql: `update ledger_entries set kind = 'cancel' where reservation_id = '${id(4)}' and delta < 0`,
    subject: id(4),
  },
  {
    check: 'order_given_back_once',
    does: 'an order that was cancelled before it took anything gives back, another does not',
    sql: `delete from ledger_entries where reservation_id = '${id(4)}' and delta < 0; ${entry(6, -1)}`,
    subject: id(6),
  },
  {
    check: 'order_given_back_once',
    does: 'a refunded order gives back as an expiry',
    sql: `update ledger_entries set kind = 'expiry' where reservation_id = '${id(11)}' and delta < 0`,
    subject: id(11),
  },
  {
    check: 'order_given_back_once',
    does: 'one refunded order gives back nothing, a paid one does',
    sql: `delete from ledger_entries where reservation_id = '${id(11)}' and delta < 0; ${entry(2, -1)}`,
    subject: id(11),
  },
  {
    check: 'closed_sale_has_nothing_pending',
    does: 'a closed sale has an order that is not paid',
    orders: [{ id: id(20), sale: 'closed', user: 'zoe', qty: 1, status: 'PENDING_PAYMENT' }],
    sql: `update sale_stock set sold = 3 where sale_id = 'closed'`,
    subject: id(20),
  },
  {
    check: 'unopened_sale_has_no_orders',
    does: 'a sale that was never opened has an order',
    orders: [
      { id: id(20), sale: 'unopened', user: 'zoe', qty: 1, status: 'CANCELLED', reason: 'by_buyer', untaken: true },
    ],
    subject: 'unopened',
  },
  {
    check: 'order_has_sale',
    does: 'an order’s sale is gone',
    orders: [{ id: id(20), sale: 'gone', user: 'zoe', qty: 1, status: 'CANCELLED', reason: 'by_buyer', untaken: true }],
    subject: id(20),
  },
];
