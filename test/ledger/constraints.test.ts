/** The rules that must never break are the database's own: each is shown to refuse, by SQLSTATE and by name. */
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freshStores, type Stores } from '../support/stores.ts';
import { ofWebhooks } from './refused-webhooks.ts';

let stores: Stores;
let db: pg.Client;
beforeAll(async () => {
  stores = await freshStores();
  db = new pg.Client({ connectionString: stores.databaseUrl });
  await db.connect();
});
afterAll(async () => {
  await db.end();
  await stores.drop();
});

const id = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const [PENDING, PAID, EXPIRED, CANCELLED, REJECTED, REFUNDED, NEW] = [1, 2, 3, 4, 5, 6, 9].map(id);

const SOUND = `
  insert into sales (sale_id, name, starts_at, ends_at, hold_seconds, max_per_reservation, price_amount, currency)
    values ('s', 'S', '2020-01-01', '2099-01-01', 60, 4, 500, 'EUR');
  insert into sale_stock (sale_id, total, sold) values ('s', 5, 3);
  insert into sale_orders (reservation_id, sale_id, user_id, qty, amount, currency, status, reason, reserved_at, expires_at)
    values ('${PENDING}', 's', 'ann', 1, 500, 'EUR', 'PENDING_PAYMENT', null, now(), now() + '1 min'),
           ('${PAID}', 's', 'bob', 2, 1000, 'EUR', 'PAID', null, now(), now() + '1 min'),
           ('${EXPIRED}', 's', 'cleo', 1, 500, 'EUR', 'EXPIRED', null, now(), now() + '1 min'),
           ('${CANCELLED}', 's', 'dan', 1, 500, 'EUR', 'CANCELLED', 'by_buyer', now(), now() + '1 min'),
           ('${REJECTED}', 's', 'eve', 1, 500, 'EUR', 'REJECTED', 'no_room', now(), now() + '1 min');
  insert into sale_orders (reservation_id, sale_id, user_id, qty, amount, currency, status, units_returned, reserved_at, expires_at)
    values ('${REFUNDED}', 's', 'gus', 1, 500, 'EUR', 'REFUNDED', true, now(), now() + '1 min');
  insert into ledger_entries (sale_id, reservation_id, kind, delta)
    values ('s', '${PENDING}', 'order', 1), ('s', '${PAID}', 'order', 2), ('s', '${EXPIRED}', 'order', 1),
           ('s', '${EXPIRED}', 'expiry', -1);
  insert into payments (payment_id, reservation_id, amount, currency, status)
    values ('p-paid', '${PAID}', 1000, 'EUR', 'APPLIED'), ('p-late', '${EXPIRED}', 500, 'EUR', 'OWED'),
           ('p-owed', '${EXPIRED}', 500, 'EUR', 'OWED');
  insert into payment_events (event_id, type, payment_id, reservation_id, amount, currency, state, outcome)
    values ('e', 'payment.succeeded', 'p-paid', '${PAID}', 1000, 'EUR', 'applied', 'paid');
  insert into refunds (payment_id, amount, currency, reason) values ('p-late', 500, 'EUR', 'expired')`;

beforeEach(async () => {
  await db.query(`set session_replication_role = replica;
    truncate sales, sale_stock, sale_orders, ledger_entries, payments, payment_events, refunds restart identity cascade;
    reset session_replication_role`);
  await db.query(SOUND);
});

/** @returns SQLSTATE and what was broken: a constraint's name, or the trigger's words; null if nothing refused */
async function refusal(sql: string): Promise<string | null> {
  try {
    await db.query('begin');
    await db.query(sql);
    await db.query('set constraints all immediate');
    return null;
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    return `${error.code ?? ''} ${error.constraint ?? error.message.replaceAll(/[0-9a-f-]{36}/g, '…')}`;
  } finally {
    await db.query('rollback');
  }
}

const UNITS = 'refunded_says_what_became_of_its_units';
const UNITS_KEPT = '23000 order …: what became of its units cannot change';

/** An order with some members changed. */
function order(but: Record<string, string> = {}): string {
  const row = {
    ...{ reservation_id: `'${NEW}'`, sale_id: `'s'`, user_id: `'fay'`, qty: '1', amount: '500', currency: `'EUR'` },
    ...{ status: `'PENDING_PAYMENT'`, reserved_at: 'now()', expires_at: `now() + '1 min'` },
    ...but,
  };
  return `insert into sale_orders (${Object.keys(row).join()}) values (${Object.values(row).join()})`;
}
const entry = (of: string | undefined, kind: string, delta: number) =>
  `insert into ledger_entries (sale_id, reservation_id, kind, delta) values ('s', '${of ?? ''}', '${kind}', ${delta})`;
const page = (but: Record<string, string>) => {
  const row = {
    reservation_id: `'${NEW ?? ''}'`,
    sale_id: `'s'`,
    hold_expires_at: 'now()',
    expires_at: 'now()',
    ...but,
  };
  return `insert into checkout_pages (${Object.keys(row).join()}) values (${Object.values(row).join()})`;
};
const payment = (idText: string, but: Record<string, string> = {}) => {
  const row = { amount: '500', currency: `'EUR'`, status: `'PARKED'`, reservation_id: `'${PENDING ?? ''}'`, ...but };
  return `insert into payments (payment_id, ${Object.keys(row).join()}) values ('${idText}', ${Object.values(row).join()})`;
};
const refund = (of: string, amount: number, currency = 'EUR', reason = 'expired') =>
  `insert into refunds (payment_id, amount, currency, reason) values ('${of}', ${amount}, '${currency}', '${reason}')`;
const sale = (but: Record<string, string>) => {
  const row = {
    ...{ sale_id: `'t'`, name: `'T'`, starts_at: `'2020-01-01'`, ends_at: `'2099-01-01'`, hold_seconds: '60' },
    ...{ max_per_reservation: '4', price_amount: '500', currency: `'EUR'` },
    ...but,
  };
  return `insert into sales (${Object.keys(row).join()}) values (${Object.values(row).join()})`;
};
const set = (what: string, of: string | undefined) =>
  `update sale_orders set ${what} where reservation_id = '${of ?? ''}'`;

const CHECK = '23514';
const UNIQUE = '23505';
const FOREIGN = '23503';
const PROMISED = '23000 order …: what was promised cannot change';

/** An entry of the admin journal with some of its values replaced. */
function journal(values: Record<string, string>): string {
  const row = { who: `'token'`, action: `'pause'`, sale_id: `'s'`, outcome: `'done'`, ...values };
  return `insert into admin_journal (${Object.keys(row).join()}) values (${Object.values(row).join()})`;
}

const refused: [what: string, sql: string, by: string][] = [
  ['one unit more than there are', `update sale_stock set sold = 6`, `${CHECK} never_oversold`],
  ['a total below what is sold', `update sale_stock set total = 2`, `${CHECK} never_oversold`],
  ['less than nothing sold', `update sale_stock set sold = -1`, `${CHECK} sale_stock_sold_check`],
  ['a total below nothing', `update sale_stock set sold = 0, total = -1`, `${CHECK} never_oversold`],
  ['stock of no sale', `insert into sale_stock values ('none', 1)`, `${FOREIGN} sale_stock_sale_id_fkey`],

  ['a second live order of a buyer', order({ user_id: `'ann'` }), `${UNIQUE} one_live_order`],
  ['a live order beside a paid one', order({ user_id: `'bob'` }), `${UNIQUE} one_live_order`],
  ['a reservation id twice', order({ reservation_id: `'${PENDING ?? ''}'` }), `${UNIQUE} sale_orders_pkey`],
  ['an order of no sale', order({ sale_id: `'none'` }), `${FOREIGN} sale_orders_sale_id_fkey`],
  ['an unknown status', order({ status: `'SHIPPED'` }), `${CHECK} sale_orders_status_check`],
  ['no units', order({ qty: '0' }), `${CHECK} sale_orders_qty_check`],
  ['a negative amount', order({ amount: '-1' }), `${CHECK} sale_orders_amount_check`],
  ['an amount that no number holds', order({ amount: '9007199254740992' }), `${CHECK} sale_orders_amount_check`],
  ['a currency in small letters', order({ currency: `'eur'` }), `${CHECK} sale_orders_currency_check`],
  ['a buyer without a name', order({ user_id: `''` }), `${CHECK} sale_orders_user_id_check`],
  ['a buyer with a space', order({ user_id: `'a b'` }), `${CHECK} sale_orders_user_id_check`],
  ['a buyer of 129 letters', order({ user_id: `repeat('a', 129)` }), `${CHECK} sale_orders_user_id_check`],
  [
    'an end before the start',
    order({ expires_at: `now() - '1 min'::interval` }),
    `${CHECK} expires_after_it_is_reserved`,
  ],
  ['a rejection without reason', order({ status: `'REJECTED'` }), `${CHECK} rejected_says_why`],
  ['a rejection by the buyer', order({ status: `'REJECTED'`, reason: `'by_buyer'` }), `${CHECK} rejected_says_why`],
  ['a cancellation without reason', order({ status: `'CANCELLED'` }), `${CHECK} cancelled_says_why`],
  ['a cancellation for no room', order({ status: `'CANCELLED'`, reason: `'no_room'` }), `${CHECK} cancelled_says_why`],
  ['a reason for a live order', order({ reason: `'by_buyer'` }), `${CHECK} others_have_no_reason`],
  ['an unknown reason', order({ status: `'REJECTED'`, reason: `'mood'` }), `${CHECK} rejected_says_why`],
  [
    'a duplicate of nothing',
    order({ status: `'REJECTED'`, reason: `'duplicate_buyer'` }),
    `${CHECK} duplicate_names_the_live_one`,
  ],
  [
    'a live order that is a duplicate',
    order({ live_reservation_id: `'${PAID ?? ''}'` }),
    `${CHECK} duplicate_names_the_live_one`,
  ],
  ['a refund that does not say what became of the units', order({ status: `'REFUNDED'` }), `${CHECK} ${UNITS}`],
  ['a paid order whose units were returned', set('units_returned = true', PAID), `${CHECK} ${UNITS}`],
  ['returned units that leave the sale after all', set('units_returned = false', REFUNDED), UNITS_KEPT],
  ['a live order whose hold was released', set('gate_released_at = now()', PENDING), `${CHECK} live_is_not_released`],
  ['a paid order whose hold was released', set('gate_released_at = now()', PAID), `${CHECK} live_is_not_released`],

  ...['qty = 2', 'amount = 1', `currency = 'USD'`, `user_id = 'x'`, `expires_at = now() + '1 day'::interval`].map(
    (change): [string, string, string] => [`changed: ${change}`, set(change, PENDING), PROMISED],
  ),
  ['changed: reserved_at', set(`reserved_at = now() - '1 day'::interval`, PENDING), PROMISED],
  ['changed: the reservation id', set(`reservation_id = '${NEW ?? ''}'`, PENDING), PROMISED],
  ['changed: the sale', `${sale({})}; ${set(`sale_id = 't'`, PENDING)}`, PROMISED],
  ['changed together with the status', set(`status = 'PAID', amount = 1`, PENDING), PROMISED],

  ['a journal entry changed', 'update ledger_entries set delta = 2', '23000 ledger_entries is append-only'],
  ['a journal entry deleted', 'delete from ledger_entries', '23000 ledger_entries is append-only'],
  ['the journal emptied', 'truncate ledger_entries', '23000 ledger_entries is append-only'],
  ['a sale removed with its journal', 'truncate sales cascade', '23000 ledger_entries is append-only'],
  ['a reservation takes twice', entry(PENDING, 'order', 1), `${UNIQUE} one_taking`],
  ['a reservation gives back twice', entry(EXPIRED, 'cancel', -1), `${UNIQUE} one_giving_back`],
  ['an entry that takes by expiry', entry(CANCELLED, 'expiry', 1), `${CHECK} delta_fits_kind`],
  ['an entry that gives back by order', entry(CANCELLED, 'order', -1), `${CHECK} delta_fits_kind`],
  ['an entry that takes by refund', entry(CANCELLED, 'refund', 1), `${CHECK} delta_fits_kind`],
  ['an entry of nothing', entry(CANCELLED, 'order', 0), `${CHECK} delta_fits_kind`],
  ['an unknown kind of entry', entry(CANCELLED, 'gift', -1), `${CHECK} ledger_entries_kind_check`],
  ['an entry of no order', entry(NEW, 'order', 1), `${FOREIGN} ledger_entries_reservation_id_fkey`],
  ['an order removed under its journal', `delete from sale_orders`, `${FOREIGN} ledger_entries_reservation_id_fkey`],

  ['a payment id twice', payment('p-paid'), `${UNIQUE} payments_pkey`],
  [
    'two payments applied to one order',
    payment('p', { reservation_id: `'${PAID ?? ''}'`, status: `'APPLIED'` }),
    `${UNIQUE} one_applied_payment`,
  ],
  ['a negative payment', payment('p', { amount: '-1' }), `${CHECK} payments_amount_check`],
  ['an unknown status of a payment', payment('p', { status: `'LOST'` }), `${CHECK} payments_status_check`],
  ['a payment in small letters', payment('p', { currency: `'eur'` }), `${CHECK} payments_currency_check`],
  ['a payment without an id', payment(''), `${CHECK} payments_payment_id_check`],
  ['a payment of no reservation', payment('p', { reservation_id: `''` }), `${CHECK} payments_reservation_id_check`],

  ['a refund of more than was paid', refund('p-owed', 501), `${FOREIGN} exactly_what_was_captured`],
  ['a refund of less', refund('p-owed', 499), `${FOREIGN} exactly_what_was_captured`],
  ['a refund in other money', refund('p-owed', 500, 'USD'), `${FOREIGN} exactly_what_was_captured`],
  ['a refund of no payment', refund('none', 500), `${FOREIGN} exactly_what_was_captured`],
  ['a second refund of a payment', refund('p-late', 500), `${UNIQUE} refunds_payment_id_key`],
  ['an unknown reason of a refund', refund('p-owed', 500, 'EUR', 'mood'), `${CHECK} refunds_reason_check`],
  ['an unknown status of a refund', `update refunds set status = 'LOST'`, `${CHECK} refunds_status_check`],
  ['attempts below nothing', `update refunds set attempts = -1`, `${CHECK} refunds_attempts_check`],
  [
    'a payment changed under its refund',
    `update payments set amount = 1 where payment_id = 'p-late'`,
    `${FOREIGN} exactly_what_was_captured`,
  ],
  ['a payment removed under its refund', `delete from payments`, `${FOREIGN} exactly_what_was_captured`],

  ['a page without an address', page({ session_id: `'cs_1'` }), `${CHECK} made_as_a_whole`],
  ['a page that was never made, closed', page({ closed_at: 'now()' }), `${CHECK} only_what_was_made_is_closed`],
  ['a page without a name', page({ session_id: `''`, url: `'u'` }), `${CHECK} checkout_pages_session_id_check`],
  ['a page with an empty address', page({ session_id: `'cs_1'`, url: `''` }), `${CHECK} checkout_pages_url_check`],
  ['attempts to close a page below nothing', page({ attempts: '-1' }), `${CHECK} checkout_pages_attempts_check`],
  ['a page of no sale', page({ sale_id: `'none'` }), `${FOREIGN} checkout_pages_sale_id_fkey`],
  [
    'one page for two reservations',
    [PENDING, PAID].map((of) => page({ reservation_id: `'${of ?? ''}'`, session_id: `'cs_1'`, url: `'u'` })).join(';'),
    `${UNIQUE} checkout_pages_session_id_key`,
  ],

  ['an event id twice', `insert into payment_events select * from payment_events`, `${UNIQUE} payment_events_pkey`],
  ['an event without an id', `update payment_events set event_id = ''`, `${CHECK} payment_events_event_id_check`],
  ['an unknown event', `update payment_events set type = 'order.shipped'`, `${CHECK} payment_events_type_check`],
  ['an unknown state of an event', `update payment_events set state = 'lost'`, `${CHECK} payment_events_state_check`],
  [
    'a capture that waits as an event',
    `update payment_events set state = 'parked'`,
    `${CHECK} only_a_cancellation_waits`,
  ],

  ['a sale that ends before it starts', sale({ ends_at: `'2019-01-01'` }), `${CHECK} ends_after_it_starts`],
  ['a sale with a slash in its id', sale({ sale_id: `'a/b'` }), `${CHECK} sales_sale_id_check`],
  ['an unknown state of a sale', sale({ state: `'gone'` }), `${CHECK} sales_state_check`],
  ['a hold of no time', sale({ hold_seconds: '0' }), `${CHECK} sales_hold_seconds_check`],
  ['a sale without a name', sale({ name: `''` }), `${CHECK} sales_name_check`],
  ['a price below nothing', sale({ price_amount: '-1' }), `${CHECK} sales_price_amount_check`],
  ['a price in small letters', sale({ currency: `'eur'` }), `${CHECK} sales_currency_check`],
  ['no units per reservation', sale({ max_per_reservation: '0' }), `${CHECK} sales_max_per_reservation_check`],
  ['settings before the first', sale({ settings: '0' }), `${CHECK} sales_settings_check`],
  ['an entry by nobody', journal({ who: `'somebody'` }), `${CHECK} admin_journal_who_check`],
  ['a session without a name', journal({ who: `'session'` }), `${CHECK} sessions_have_a_name`],
  [
    'a session with an empty name',
    journal({ who: `'session'`, session: `''` }),
    `${CHECK} admin_journal_session_check`,
  ],
  ['an empty request id', journal({ request_id: `''` }), `${CHECK} admin_journal_request_id_check`],
  ['an unknown action', journal({ action: `'sell'` }), `${CHECK} admin_journal_action_check`],
  ['an entry about no sale', journal({ sale_id: `''` }), `${CHECK} admin_journal_sale_id_check`],
  ['an entry about nothing', journal({ sale_id: 'null' }), `${CHECK} about_a_sale_or_an_endpoint`],
  ['an entry about two things', journal({ endpoint_id: `'e'` }), `${CHECK} about_a_sale_or_an_endpoint`],
  [
    'an entry about no endpoint',
    journal({ sale_id: 'null', endpoint_id: `''` }),
    `${CHECK} admin_journal_endpoint_id_check`,
  ],
  ['an unknown outcome', journal({ outcome: `'maybe'`, reason: `'x'` }), `${CHECK} admin_journal_outcome_check`],
  ['refused without a reason', journal({ outcome: `'refused'` }), `${CHECK} says_why_it_was_not_done`],
  [
    'refused with an empty reason',
    journal({ outcome: `'refused'`, reason: `''` }),
    `${CHECK} admin_journal_reason_check`,
  ],
  ['a token below nothing', 'update shard_fences set token = -1', `${CHECK} shard_fences_token_check`],
  ['a shard beyond the last', 'insert into shard_fences values (256)', `${CHECK} shard_fences_shard_check`],
  ...ofWebhooks,
];

test.each(refused)('refused: %s', async (_, sql, by) => {
  expect(await refusal(sql)).toBe(by);
});

describe('an order resolves once', () => {
  const from = { PENDING_PAYMENT: PENDING, PAID, EXPIRED, CANCELLED, REJECTED, REFUNDED };
  type Status = keyof typeof from;
  const statuses = Object.keys(from) as Status[];
  const legal: Status[] = ['PAID', 'EXPIRED', 'CANCELLED'];
  const reason = { CANCELLED: `'by_buyer'`, REJECTED: `'no_room'` } as Partial<Record<Status, string>>;

  test.each(statuses.flatMap((a) => statuses.map((b) => [a, b] as const)))('%s to %s', async (a, b) => {
    const answer = await refusal(
      set(
        `status = '${b}', reason = ${reason[b] ?? 'null'}, units_returned = ${b === 'REFUNDED' ? 'true' : 'null'}`,
        from[a],
      ),
    );
    const may = a === b || (a === 'PENDING_PAYMENT' && legal.includes(b)) || (a === 'PAID' && b === 'REFUNDED');
    expect(answer).toBe(may ? null : `23000 order …: ${a} cannot become ${b}`);
  });
});

/** Implied by others, which come first in the alphabet, in which Postgres looks; or only there to be referred to. */
const IMPLIED = ['sale_orders_reason_check', 'sale_stock_total_check', 'payments_captured'];

test('every check, foreign key and unique index of the schema is in the table above', async () => {
  const { rows } = await db.query<{ name: string }>(`
    select conname as name from pg_constraint
      where connamespace = 'public'::regnamespace and contype in ('c', 'f', 'u') and conrelid <> 0
    union select indexrelid::regclass::text from pg_index join pg_class c on c.oid = indrelid
      where indisunique and not indisprimary and c.relnamespace = 'public'::regnamespace`);
  const shown = new Set([...refused.map(([, , by]) => by.split(' ')[1]), ...IMPLIED]);
  expect(rows.map(({ name }) => name).filter((name) => !shown.has(name))).toEqual([]);
});
