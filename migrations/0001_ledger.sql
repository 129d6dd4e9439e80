-- Up Migration

-- The ledger: the only truth about who owns what. Rules that must never break are constraints here,
-- so that a bug in the program becomes an error and not an oversold unit.

create table sales (
  sale_id             text primary key check (sale_id ~ '^[A-Za-z0-9_-]{1,64}$'),
  name                text not null check (length(name) between 1 and 200),
  state               text not null default 'open' check (state in ('open', 'paused', 'ended', 'closed')),
  starts_at           timestamptz not null,
  ends_at             timestamptz not null,
  hold_seconds        integer not null check (hold_seconds between 1 and 604800),
  max_per_reservation integer not null check (max_per_reservation between 1 and 1000),
  price_amount        bigint not null check (price_amount between 0 and 1000000000000),
  currency            text not null check (currency ~ '^[A-Z]{3}$'),
  settings            bigint not null default 1 check (settings >= 1),
  opened_at           timestamptz,
  created_at          timestamptz not null default now(),
  constraint ends_after_it_starts check (ends_at > starts_at)
);
comment on column sales.settings is 'version of the settings; the gate refuses older ones';
comment on column sales.opened_at is 'when the gate was first opened; from then on an empty gate is a lost gate, to be rebuilt';

-- Apart from sales, since its row is the one that every batch of orders locks: small, and updated in place.
create table sale_stock (
  sale_id text primary key references sales,
  total   integer not null check (total >= 0),
  sold    integer not null default 0 check (sold >= 0),
  constraint never_oversold check (sold <= total)
) with (fillfactor = 50);

create table sale_orders (
  reservation_id      uuid primary key,
  sale_id             text not null references sales,
  user_id             text not null check (user_id ~ '^[\x21-\x7e]{1,128}$'),
  qty                 integer not null check (qty >= 1),
  amount              bigint not null check (amount between 0 and 9007199254740991),
  currency            text not null check (currency ~ '^[A-Z]{3}$'),
  status              text not null check (status in ('PENDING_PAYMENT', 'PAID', 'EXPIRED', 'CANCELLED', 'REJECTED')),
  reason              text check (reason in ('no_room', 'duplicate_buyer', 'by_buyer', 'payment_canceled')),
  live_reservation_id uuid,
  reserved_at         timestamptz not null,
  expires_at          timestamptz not null,
  recorded_at         timestamptz not null default now(),
  changed_at          timestamptz not null default now(),
  changed_xid         xid8 not null default pg_current_xact_id(),
  gate_released_at    timestamptz,
  constraint expires_after_it_is_reserved check (expires_at > reserved_at),
  -- A null reason would make "reason in (...)" null, which a check lets pass.
  constraint rejected_says_why check (status <> 'REJECTED' or reason is not null and reason in ('no_room', 'duplicate_buyer')),
  constraint cancelled_says_why check (status <> 'CANCELLED' or reason is not null and reason in ('by_buyer', 'payment_canceled')),
  constraint others_have_no_reason check (status in ('REJECTED', 'CANCELLED') or reason is null),
  constraint duplicate_names_the_live_one check ((reason is not distinct from 'duplicate_buyer') = (live_reservation_id is not null)),
  constraint live_is_not_released check (gate_released_at is null or status in ('EXPIRED', 'CANCELLED', 'REJECTED'))
);
comment on column sale_orders.live_reservation_id is 'for duplicate_buyer: the order that this buyer already has';
comment on column sale_orders.changed_xid is 'transaction of the last change of status: orders a listing so that a reader with a cursor misses nothing';
comment on column sale_orders.gate_released_at is 'when the gate was seen to hold nothing of a finished order';

create unique index one_live_order on sale_orders (sale_id, user_id) where status in ('PENDING_PAYMENT', 'PAID');
create index orders_due on sale_orders (expires_at) where status = 'PENDING_PAYMENT';
create index orders_to_release on sale_orders (sale_id, reservation_id)
  where status in ('EXPIRED', 'CANCELLED', 'REJECTED') and gate_released_at is null;
create index orders_listing on sale_orders (sale_id, status, changed_xid, reservation_id);

-- An order resolves once: PENDING_PAYMENT ends as PAID, EXPIRED or CANCELLED, and what was promised never changes.
create function guard_order() returns trigger language plpgsql as $$
begin
  if (new.reservation_id, new.sale_id, new.user_id, new.qty, new.amount, new.currency, new.reserved_at, new.expires_at)
     is distinct from
     (old.reservation_id, old.sale_id, old.user_id, old.qty, old.amount, old.currency, old.reserved_at, old.expires_at) then
    raise exception 'order %: what was promised cannot change', old.reservation_id using errcode = 'integrity_constraint_violation';
  end if;
  if new.status <> old.status then
    if old.status <> 'PENDING_PAYMENT' or new.status = 'REJECTED' then
      raise exception 'order %: % cannot become %', old.reservation_id, old.status, new.status
        using errcode = 'integrity_constraint_violation';
    end if;
    new.changed_at := now();
    new.changed_xid := pg_current_xact_id();
  end if;
  return new;
end $$;
create trigger guard_order before update on sale_orders for each row execute function guard_order();

-- The journal. For each sale the sum of delta is sale_stock.sold; a reservation takes once and gives back once.
create table ledger_entries (
  entry_id       bigint generated always as identity primary key,
  sale_id        text not null references sales,
  reservation_id uuid not null references sale_orders,
  kind           text not null check (kind in ('order', 'expiry', 'cancel')),
  delta          integer not null,
  at             timestamptz not null default now(),
  constraint delta_fits_kind check (case kind when 'order' then delta > 0 else delta < 0 end)
);
create unique index one_taking on ledger_entries (reservation_id) where delta > 0;
create unique index one_giving_back on ledger_entries (reservation_id) where delta < 0;
create index entries_by_sale on ledger_entries (sale_id);

create function append_only() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'integrity_constraint_violation';
end $$;
create trigger append_only before update or delete or truncate on ledger_entries
  for each statement execute function append_only();

-- Money that a provider says it captured, by the provider's payment id.
create table payments (
  payment_id     text primary key check (length(payment_id) between 1 and 255),
  reservation_id text not null check (length(reservation_id) between 1 and 255),
  amount         bigint not null check (amount between 0 and 9007199254740991),
  currency       text not null check (currency ~ '^[A-Z]{3}$'),
  status         text not null check (status in ('PARKED', 'APPLIED', 'OWED')),
  received_at    timestamptz not null default now(),
  constraint payments_captured unique (payment_id, amount, currency)
);
comment on table payments is 'PARKED: its order is not recorded yet. APPLIED: it paid its order. OWED: it is to be given back.';
create unique index one_applied_payment on payments (reservation_id) where status = 'APPLIED';
create index payments_parked on payments (received_at) where status = 'PARKED';
create index payments_by_reservation on payments (reservation_id);

-- What a provider sent, by event id: remembered in the transaction that applied it, so that a repetition changes nothing.
create table payment_events (
  event_id       text primary key check (length(event_id) between 1 and 255),
  type           text not null check (type in ('payment.succeeded', 'payment.failed', 'payment.canceled', 'refund.succeeded', 'refund.failed')),
  payment_id     text not null,
  reservation_id text not null,
  amount         bigint not null,
  currency       text not null,
  state          text not null check (state in ('applied', 'parked', 'ignored')),
  outcome        text not null,
  received_at    timestamptz not null default now(),
  constraint only_a_cancellation_waits check (state <> 'parked' or type = 'payment.canceled')
);
comment on column payment_events.state is 'parked: a cancellation that waits for its order; a capture waits in payments';
create index events_parked on payment_events (reservation_id) where state = 'parked';

-- The outbox of refunds: one per payment, of exactly what was captured (the foreign key says so).
create table refunds (
  refund_id       uuid primary key default gen_random_uuid(),
  payment_id      text not null unique,
  amount          bigint not null,
  currency        text not null,
  reason          text not null check (reason in ('expired', 'cancelled', 'rejected', 'already_paid', 'amount_mismatch', 'unknown_reservation')),
  status          text not null default 'PENDING' check (status in ('PENDING', 'SUBMITTED', 'SUCCEEDED', 'FAILED')),
  attempts        integer not null default 0 check (attempts >= 0),
  next_attempt_at timestamptz not null default now(),
  last_error      text,
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  constraint exactly_what_was_captured foreign key (payment_id, amount, currency) references payments (payment_id, amount, currency)
);
comment on column refunds.status is 'PENDING: the provider is to be called. SUBMITTED: it accepted and will report. SUCCEEDED, FAILED: final.';
create index refunds_due on refunds (next_attempt_at) where status in ('PENDING', 'SUBMITTED');

-- Tokens that fence keepers: drawn here and not in Redis, since a counter in Redis could be wiped.
create table shard_fences (
  shard integer primary key check (shard between 0 and 255),
  token bigint not null default 0 check (token >= 0)
);
insert into shard_fences (shard) select generate_series(0, 255);
