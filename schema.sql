CREATE OR REPLACE FUNCTION public.announce_order()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  event constant text := 'reservation.' || lower(new.status);
  rfc3339 constant text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
begin
  -- For shops that want no webhooks: a look at an empty table costs less than half of what the insert of nothing does.
  if not exists (select from webhook_endpoints where active and event = any(events)) then
    return null;
  end if;
  -- A conflict is an event that is there already: an order's change never fails because of its announcement.
  insert into webhook_deliveries (endpoint_key, event_id, type, payload)
  select endpoint_key, new.reservation_id || '_' || lower(new.status), event, json_strip_nulls(json_build_object(
      'type', event,
      'timestamp', to_char(new.changed_at at time zone 'UTC', rfc3339),
      'data', json_build_object(
        'reservationId', new.reservation_id, 'saleId', new.sale_id, 'userId', new.user_id, 'qty', new.qty,
        'amount', new.amount, 'currency', new.currency, 'status', new.status, 'reason', new.reason,
        'unitsReturned', new.units_returned,
        'reservedAt', to_char(new.reserved_at at time zone 'UTC', rfc3339),
        'expiresAt', to_char(new.expires_at at time zone 'UTC', rfc3339))))
  from webhook_endpoints where active and event = any(events)
  order by endpoint_key
  on conflict do nothing;
  return null;
end $function$
;

CREATE OR REPLACE FUNCTION public.append_only()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'integrity_constraint_violation';
end $function$
;

CREATE OR REPLACE FUNCTION public.guard_order()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if (new.reservation_id, new.sale_id, new.user_id, new.qty, new.amount, new.currency, new.reserved_at, new.expires_at)
     is distinct from
     (old.reservation_id, old.sale_id, old.user_id, old.qty, old.amount, old.currency, old.reserved_at, old.expires_at) then
    raise exception 'order %: what was promised cannot change', old.reservation_id using errcode = 'integrity_constraint_violation';
  end if;
  if new.status <> old.status then
    if not (old.status = 'PENDING_PAYMENT' and new.status in ('PAID', 'EXPIRED', 'CANCELLED')
            or old.status = 'PAID' and new.status = 'REFUNDED') then
      raise exception 'order %: % cannot become %', old.reservation_id, old.status, new.status
        using errcode = 'integrity_constraint_violation';
    end if;
    new.changed_at := now();
    new.changed_xid := pg_current_xact_id();
  elsif new.status = 'REFUNDED' and new.units_returned is distinct from old.units_returned then
    raise exception 'order %: what became of its units cannot change', old.reservation_id
      using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $function$
;

create table admin_journal (
  entry_id bigint generated always as identity not null,
  at timestamp with time zone default clock_timestamp() not null,
  xid xid8 default pg_current_xact_id() not null,
  who text not null,
  session text,
  request_id text,
  action text not null,
  sale_id text,
  outcome text not null,
  reason text,
  before jsonb,
  after jsonb,
  endpoint_id text,
  constraint admin_journal_pkey PRIMARY KEY (entry_id),
  constraint about_a_sale_or_an_endpoint CHECK (((sale_id IS NULL) <> (endpoint_id IS NULL))),
  constraint admin_journal_action_check CHECK ((action = ANY (ARRAY['create'::text, 'change'::text, 'resize'::text, 'pause'::text, 'resume'::text, 'end'::text, 'close'::text, 'refund'::text, 'audit'::text, 'rush'::text, 'delete'::text, 'rotate'::text, 'redeliver'::text]))),
  constraint admin_journal_endpoint_id_check CHECK (((length(endpoint_id) >= 1) AND (length(endpoint_id) <= 64))),
  constraint admin_journal_outcome_check CHECK ((outcome = ANY (ARRAY['done'::text, 'refused'::text, 'failed'::text]))),
  constraint admin_journal_reason_check CHECK (((length(reason) >= 1) AND (length(reason) <= 2000))),
  constraint admin_journal_request_id_check CHECK (((length(request_id) >= 1) AND (length(request_id) <= 128))),
  constraint admin_journal_sale_id_check CHECK (((length(sale_id) >= 1) AND (length(sale_id) <= 64))),
  constraint admin_journal_session_check CHECK (((length(session) >= 1) AND (length(session) <= 64))),
  constraint admin_journal_who_check CHECK ((who = ANY (ARRAY['token'::text, 'session'::text, 'command'::text]))),
  constraint says_why_it_was_not_done CHECK (((outcome = 'done'::text) = (reason IS NULL))),
  constraint sessions_have_a_name CHECK (((who = 'session'::text) = (session IS NOT NULL)))
);
CREATE INDEX admin_journal_by_sale ON public.admin_journal USING btree (sale_id, entry_id);
CREATE INDEX admin_journal_listing ON public.admin_journal USING btree (xid, entry_id);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.admin_journal FOR EACH STATEMENT EXECUTE FUNCTION append_only();
comment on column admin_journal.xid is 'orders the listing so that a reader with a cursor misses nothing, as changed_xid does for orders';
comment on column admin_journal.sale_id is 'no reference: a change of a sale that there is not is refused, and told';
comment on column admin_journal.before is 'what was changed, as it was; after: as it became, or what an audit or a rush found';
comment on column admin_journal.endpoint_id is 'no reference: an endpoint may be deleted, and what was done to it stays told';

create table checkout_pages (
  reservation_id uuid not null,
  sale_id text not null,
  hold_expires_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  session_id text,
  url text,
  closed_at timestamp with time zone,
  attempts integer default 0 not null,
  next_attempt_at timestamp with time zone default now() not null,
  constraint checkout_pages_pkey PRIMARY KEY (reservation_id),
  constraint checkout_pages_attempts_check CHECK ((attempts >= 0)),
  constraint checkout_pages_sale_id_fkey FOREIGN KEY (sale_id) REFERENCES sales(sale_id),
  constraint checkout_pages_session_id_check CHECK (((length(session_id) >= 1) AND (length(session_id) <= 255))),
  constraint checkout_pages_session_id_key UNIQUE (session_id),
  constraint checkout_pages_url_check CHECK (((length(url) >= 1) AND (length(url) <= 8192))),
  constraint made_as_a_whole CHECK (((session_id IS NULL) = (url IS NULL))),
  constraint only_what_was_made_is_closed CHECK (((closed_at IS NULL) OR (session_id IS NOT NULL)))
);
CREATE INDEX pages_to_close ON public.checkout_pages USING btree (next_attempt_at) WHERE ((session_id IS NOT NULL) AND (closed_at IS NULL));
comment on column checkout_pages.expires_at is 'what the provider is asked for: the same whenever it is asked again, since a provider takes one idempotency key for one question';
comment on column checkout_pages.session_id is 'the provider''s name for the page; null until its answer has come';

create table ledger_entries (
  entry_id bigint generated always as identity not null,
  sale_id text not null,
  reservation_id uuid not null,
  kind text not null,
  delta integer not null,
  at timestamp with time zone default now() not null,
  constraint ledger_entries_pkey PRIMARY KEY (entry_id),
  constraint delta_fits_kind CHECK (
CASE kind
    WHEN 'order'::text THEN (delta > 0)
    ELSE (delta < 0)
END),
  constraint ledger_entries_kind_check CHECK ((kind = ANY (ARRAY['order'::text, 'expiry'::text, 'cancel'::text, 'refund'::text]))),
  constraint ledger_entries_reservation_id_fkey FOREIGN KEY (reservation_id) REFERENCES sale_orders(reservation_id)
);
CREATE INDEX entries_by_sale ON public.ledger_entries USING btree (sale_id);
CREATE UNIQUE INDEX one_giving_back ON public.ledger_entries USING btree (reservation_id) WHERE (delta < 0);
CREATE UNIQUE INDEX one_taking ON public.ledger_entries USING btree (reservation_id) WHERE (delta > 0);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.ledger_entries FOR EACH STATEMENT EXECUTE FUNCTION append_only();

create table payment_events (
  event_id text not null,
  type text not null,
  payment_id text not null,
  reservation_id text not null,
  amount bigint not null,
  currency text not null,
  state text not null,
  outcome text not null,
  received_at timestamp with time zone default now() not null,
  constraint payment_events_pkey PRIMARY KEY (event_id),
  constraint only_a_cancellation_waits CHECK (((state <> 'parked'::text) OR (type = 'payment.canceled'::text))),
  constraint payment_events_event_id_check CHECK (((length(event_id) >= 1) AND (length(event_id) <= 255))),
  constraint payment_events_state_check CHECK ((state = ANY (ARRAY['applied'::text, 'parked'::text, 'ignored'::text]))),
  constraint payment_events_type_check CHECK ((type = ANY (ARRAY['payment.succeeded'::text, 'payment.failed'::text, 'payment.canceled'::text, 'refund.succeeded'::text, 'refund.failed'::text])))
);
CREATE INDEX events_parked ON public.payment_events USING btree (reservation_id) WHERE (state = 'parked'::text);
CREATE INDEX refunds_reported ON public.payment_events USING btree (payment_id) WHERE (type = 'refund.succeeded'::text);
comment on column payment_events.state is 'parked: a cancellation that waits for its order; a capture waits in payments';

create table payments (
  payment_id text not null,
  reservation_id text not null,
  amount bigint not null,
  currency text not null,
  status text not null,
  received_at timestamp with time zone default now() not null,
  constraint payments_pkey PRIMARY KEY (payment_id),
  constraint payments_amount_check CHECK (((amount >= 0) AND (amount <= '9007199254740991'::bigint))),
  constraint payments_captured UNIQUE (payment_id, amount, currency),
  constraint payments_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
  constraint payments_payment_id_check CHECK (((length(payment_id) >= 1) AND (length(payment_id) <= 255))),
  constraint payments_reservation_id_check CHECK (((length(reservation_id) >= 1) AND (length(reservation_id) <= 255))),
  constraint payments_status_check CHECK ((status = ANY (ARRAY['PARKED'::text, 'APPLIED'::text, 'OWED'::text])))
);
CREATE UNIQUE INDEX one_applied_payment ON public.payments USING btree (reservation_id) WHERE (status = 'APPLIED'::text);
CREATE INDEX payments_by_reservation ON public.payments USING btree (reservation_id);
CREATE INDEX payments_parked ON public.payments USING btree (received_at) WHERE (status = 'PARKED'::text);
comment on table payments is 'PARKED: its order is not recorded yet. APPLIED: it paid its order. OWED: it is to be given back.';

create table refunds (
  refund_id uuid default gen_random_uuid() not null,
  payment_id text not null,
  amount bigint not null,
  currency text not null,
  reason text not null,
  status text default 'PENDING'::text not null,
  attempts integer default 0 not null,
  next_attempt_at timestamp with time zone default now() not null,
  last_error text,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  constraint refunds_pkey PRIMARY KEY (refund_id),
  constraint exactly_what_was_captured FOREIGN KEY (payment_id, amount, currency) REFERENCES payments(payment_id, amount, currency),
  constraint refunds_attempts_check CHECK ((attempts >= 0)),
  constraint refunds_payment_id_key UNIQUE (payment_id),
  constraint refunds_reason_check CHECK ((reason = ANY (ARRAY['expired'::text, 'cancelled'::text, 'rejected'::text, 'already_paid'::text, 'amount_mismatch'::text, 'unknown_reservation'::text, 'by_shop'::text, 'at_provider'::text, 'refunded'::text]))),
  constraint refunds_status_check CHECK ((status = ANY (ARRAY['PENDING'::text, 'SUBMITTED'::text, 'SUCCEEDED'::text, 'FAILED'::text])))
);
CREATE INDEX refunds_due ON public.refunds USING btree (next_attempt_at) WHERE (status = ANY (ARRAY['PENDING'::text, 'SUBMITTED'::text]));
comment on column refunds.status is 'PENDING: the provider is to be called. SUBMITTED: it accepted and will report. SUCCEEDED, FAILED: final.';

create table sale_orders (
  reservation_id uuid not null,
  sale_id text not null,
  user_id text not null,
  qty integer not null,
  amount bigint not null,
  currency text not null,
  status text not null,
  reason text,
  live_reservation_id uuid,
  reserved_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  recorded_at timestamp with time zone default now() not null,
  changed_at timestamp with time zone default now() not null,
  changed_xid xid8 default pg_current_xact_id() not null,
  gate_released_at timestamp with time zone,
  units_returned boolean,
  constraint sale_orders_pkey PRIMARY KEY (reservation_id),
  constraint cancelled_says_why CHECK (((status <> 'CANCELLED'::text) OR ((reason IS NOT NULL) AND (reason = ANY (ARRAY['by_buyer'::text, 'payment_canceled'::text]))))),
  constraint duplicate_names_the_live_one CHECK (((NOT (reason IS DISTINCT FROM 'duplicate_buyer'::text)) = (live_reservation_id IS NOT NULL))),
  constraint expires_after_it_is_reserved CHECK ((expires_at > reserved_at)),
  constraint live_is_not_released CHECK (((gate_released_at IS NULL) OR (status = ANY (ARRAY['EXPIRED'::text, 'CANCELLED'::text, 'REJECTED'::text, 'REFUNDED'::text])))),
  constraint others_have_no_reason CHECK (((status = ANY (ARRAY['REJECTED'::text, 'CANCELLED'::text])) OR (reason IS NULL))),
  constraint refunded_says_what_became_of_its_units CHECK (((status = 'REFUNDED'::text) = (units_returned IS NOT NULL))),
  constraint rejected_says_why CHECK (((status <> 'REJECTED'::text) OR ((reason IS NOT NULL) AND (reason = ANY (ARRAY['no_room'::text, 'duplicate_buyer'::text]))))),
  constraint sale_orders_amount_check CHECK (((amount >= 0) AND (amount <= '9007199254740991'::bigint))),
  constraint sale_orders_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
  constraint sale_orders_qty_check CHECK ((qty >= 1)),
  constraint sale_orders_reason_check CHECK ((reason = ANY (ARRAY['no_room'::text, 'duplicate_buyer'::text, 'by_buyer'::text, 'payment_canceled'::text]))),
  constraint sale_orders_sale_id_fkey FOREIGN KEY (sale_id) REFERENCES sales(sale_id),
  constraint sale_orders_status_check CHECK ((status = ANY (ARRAY['PENDING_PAYMENT'::text, 'PAID'::text, 'EXPIRED'::text, 'CANCELLED'::text, 'REJECTED'::text, 'REFUNDED'::text]))),
  constraint sale_orders_user_id_check CHECK (((length(user_id) <= 128) AND (user_id ~ '^[\x21-\x7e]+$'::text)))
);
CREATE UNIQUE INDEX one_live_order ON public.sale_orders USING btree (sale_id, user_id) WHERE (status = ANY (ARRAY['PENDING_PAYMENT'::text, 'PAID'::text]));
CREATE INDEX orders_due ON public.sale_orders USING btree (expires_at) WHERE (status = 'PENDING_PAYMENT'::text);
CREATE INDEX orders_listing ON public.sale_orders USING btree (sale_id, status, changed_xid, reservation_id);
CREATE INDEX orders_to_release ON public.sale_orders USING btree (sale_id, reservation_id) WHERE ((status = ANY (ARRAY['EXPIRED'::text, 'CANCELLED'::text, 'REJECTED'::text, 'REFUNDED'::text])) AND (gate_released_at IS NULL));
CREATE TRIGGER announce_change AFTER UPDATE ON public.sale_orders FOR EACH ROW WHEN ((new.status <> old.status)) EXECUTE FUNCTION announce_order();
CREATE TRIGGER announce_new AFTER INSERT ON public.sale_orders FOR EACH ROW WHEN ((new.status <> 'PENDING_PAYMENT'::text)) EXECUTE FUNCTION announce_order();
CREATE TRIGGER guard_order BEFORE UPDATE ON public.sale_orders FOR EACH ROW EXECUTE FUNCTION guard_order();
comment on column sale_orders.live_reservation_id is 'for duplicate_buyer: the order that this buyer already has';
comment on column sale_orders.changed_xid is 'transaction of the last change of status: orders a listing so that a reader with a cursor misses nothing';
comment on column sale_orders.gate_released_at is 'when the gate was seen to hold nothing of a finished order';
comment on column sale_orders.units_returned is 'for REFUNDED: true, its units are for sale again; false, they left the sale and its total';

create table sale_stock (
  sale_id text not null,
  total integer not null,
  sold integer default 0 not null,
  constraint sale_stock_pkey PRIMARY KEY (sale_id),
  constraint never_oversold CHECK ((sold <= total)),
  constraint sale_stock_sale_id_fkey FOREIGN KEY (sale_id) REFERENCES sales(sale_id),
  constraint sale_stock_sold_check CHECK ((sold >= 0)),
  constraint sale_stock_total_check CHECK ((total >= 0))
) with (fillfactor=50);

create table sales (
  sale_id text not null,
  name text not null,
  state text default 'open'::text not null,
  starts_at timestamp with time zone not null,
  ends_at timestamp with time zone not null,
  hold_seconds integer not null,
  max_per_reservation integer not null,
  price_amount bigint not null,
  currency text not null,
  settings bigint default 1 not null,
  opened_at timestamp with time zone,
  created_at timestamp with time zone default now() not null,
  constraint sales_pkey PRIMARY KEY (sale_id),
  constraint ends_after_it_starts CHECK ((ends_at > starts_at)),
  constraint sales_currency_check CHECK ((currency ~ '^[A-Z]{3}$'::text)),
  constraint sales_hold_seconds_check CHECK (((hold_seconds >= 1) AND (hold_seconds <= 604800))),
  constraint sales_max_per_reservation_check CHECK (((max_per_reservation >= 1) AND (max_per_reservation <= 1000))),
  constraint sales_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  constraint sales_price_amount_check CHECK (((price_amount >= 0) AND (price_amount <= '1000000000000'::bigint))),
  constraint sales_sale_id_check CHECK ((sale_id ~ '^[A-Za-z0-9_-]{1,64}$'::text)),
  constraint sales_settings_check CHECK ((settings >= 1)),
  constraint sales_state_check CHECK ((state = ANY (ARRAY['open'::text, 'paused'::text, 'ended'::text, 'closed'::text])))
);
comment on column sales.settings is 'version of the settings; the gate refuses older ones';
comment on column sales.opened_at is 'when the gate was first opened; from then on an empty gate is a lost gate, to be rebuilt';

create table schema_migrations (
  id integer default nextval('schema_migrations_id_seq'::regclass) not null,
  name character varying(255) not null,
  run_on timestamp without time zone not null,
  constraint schema_migrations_pkey PRIMARY KEY (id)
);

create table shard_fences (
  shard integer not null,
  token bigint default 0 not null,
  constraint shard_fences_pkey PRIMARY KEY (shard),
  constraint shard_fences_shard_check CHECK (((shard >= 0) AND (shard <= 255))),
  constraint shard_fences_token_check CHECK ((token >= 0))
);

create table webhook_deliveries (
  endpoint_key bigint not null,
  event_id text not null,
  delivery_no bigint generated always as identity not null,
  type text not null,
  payload json not null,
  status text default 'PENDING'::text not null,
  attempts integer default 0 not null,
  next_attempt_at timestamp with time zone default now() not null,
  claimed_until timestamp with time zone,
  last_status integer,
  last_answer text,
  last_error text,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  constraint webhook_deliveries_pkey PRIMARY KEY (endpoint_key, event_id),
  constraint webhook_deliveries_attempts_check CHECK ((attempts >= 0)),
  constraint webhook_deliveries_last_answer_check CHECK ((length(last_answer) <= 500)),
  constraint webhook_deliveries_last_error_check CHECK ((length(last_error) <= 500)),
  constraint webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['PENDING'::text, 'DELIVERED'::text, 'FAILED'::text])))
);
CREATE INDEX deliveries_by_age ON public.webhook_deliveries USING btree (updated_at);
CREATE INDEX deliveries_due ON public.webhook_deliveries USING btree (endpoint_key, next_attempt_at) WHERE (status = 'PENDING'::text);
CREATE INDEX deliveries_listing ON public.webhook_deliveries USING btree (endpoint_key, status, delivery_no);
comment on table webhook_deliveries is 'PENDING: to be sent. DELIVERED: answered 2xx. FAILED: given up after the last attempt.';
comment on column webhook_deliveries.event_id is 'the webhook-id: reservation and status, since an order comes into a status once';
comment on column webhook_deliveries.payload is 'the bytes that are signed and sent, fixed when the order changed';
comment on column webhook_deliveries.claimed_until is 'a keeper is sending it, or has died in it: nobody else sends it before then';

create table webhook_endpoints (
  endpoint_key bigint generated always as identity not null,
  endpoint_id text not null,
  url text not null,
  events text[] not null,
  active boolean default true not null,
  gone_at timestamp with time zone,
  hold_until timestamp with time zone,
  complete_since timestamp with time zone default now() not null,
  created_at timestamp with time zone default now() not null,
  constraint webhook_endpoints_pkey PRIMARY KEY (endpoint_key),
  constraint gone_is_inactive CHECK (((gone_at IS NULL) OR (NOT active))),
  constraint webhook_endpoints_endpoint_id_check CHECK ((endpoint_id ~ '^[A-Za-z0-9_-]{1,64}$'::text)),
  constraint webhook_endpoints_endpoint_id_key UNIQUE (endpoint_id),
  constraint webhook_endpoints_events_check CHECK (((cardinality(events) > 0) AND (events <@ ARRAY['reservation.paid'::text, 'reservation.expired'::text, 'reservation.cancelled'::text, 'reservation.rejected'::text, 'reservation.refunded'::text]))),
  constraint webhook_endpoints_url_check CHECK (((length(url) >= 1) AND (length(url) <= 2000)))
);
comment on column webhook_endpoints.endpoint_key is 'never used again, unlike endpoint_id: what was for a deleted endpoint is not sent to its successor';
comment on column webhook_endpoints.gone_at is 'when it answered 410 Gone, which made it inactive';
comment on column webhook_endpoints.hold_until is 'it asked to be left alone until then (Retry-After)';
comment on column webhook_endpoints.complete_since is 'each order that came into a wanted status since then has its row in webhook_deliveries';

create table webhook_secrets (
  endpoint_key bigint not null,
  secret text not null,
  until timestamp with time zone,
  constraint webhook_secrets_endpoint_key_fkey FOREIGN KEY (endpoint_key) REFERENCES webhook_endpoints(endpoint_key) ON DELETE CASCADE,
  constraint webhook_secrets_secret_check CHECK ((secret ~ '^whsec_'::text))
);
CREATE UNIQUE INDEX one_present_secret ON public.webhook_secrets USING btree (endpoint_key) WHERE (until IS NULL);
CREATE INDEX secrets_by_endpoint ON public.webhook_secrets USING btree (endpoint_key);
comment on column webhook_secrets.until is 'null: the present one. Otherwise it was rotated out, and signs beside the present one until then';
