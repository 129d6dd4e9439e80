-- Up Migration

-- Webhooks out to the shop. Whoever changes an order's status, by whatever statement, writes its events in the same
-- transaction: a trigger does, so that no code path can forget.

create table webhook_endpoints (
  endpoint_key   bigint generated always as identity primary key,
  endpoint_id    text not null unique check (endpoint_id ~ '^[A-Za-z0-9_-]{1,64}$'),
  url            text not null check (length(url) between 1 and 2000),
  events         text[] not null check (cardinality(events) > 0 and events <@ array['reservation.paid', 'reservation.expired',
                   'reservation.cancelled', 'reservation.rejected', 'reservation.refunded']),
  active         boolean not null default true,
  gone_at        timestamptz,
  hold_until     timestamptz,
  complete_since timestamptz not null default now(),
  created_at     timestamptz not null default now(),
  constraint gone_is_inactive check (gone_at is null or not active)
);
comment on column webhook_endpoints.endpoint_key is 'never used again, unlike endpoint_id: what was for a deleted endpoint is not sent to its successor';
comment on column webhook_endpoints.gone_at is 'when it answered 410 Gone, which made it inactive';
comment on column webhook_endpoints.hold_until is 'it asked to be left alone until then (Retry-After)';
comment on column webhook_endpoints.complete_since is 'each order that came into a wanted status since then has its row in webhook_deliveries';

create table webhook_secrets (
  endpoint_key bigint not null references webhook_endpoints on delete cascade,
  secret       text not null check (secret ~ '^whsec_'),
  until        timestamptz
);
comment on column webhook_secrets.until is 'null: the present one. Otherwise it was rotated out, and signs beside the present one until then';
create unique index one_present_secret on webhook_secrets (endpoint_key) where until is null;
create index secrets_by_endpoint on webhook_secrets (endpoint_key);

-- The outbox and the log of deliveries: an event for an endpoint. No foreign key: a transaction that ends orders would
-- wait at it for one that deletes the endpoint. What belongs to none any more is not sent, and is pruned with what is old.
create table webhook_deliveries (
  endpoint_key    bigint not null,
  event_id        text not null,
  delivery_no     bigint generated always as identity,
  type            text not null,
  payload         json not null,
  status          text not null default 'PENDING' check (status in ('PENDING', 'DELIVERED', 'FAILED')),
  attempts        integer not null default 0 check (attempts >= 0),
  next_attempt_at timestamptz not null default now(),
  claimed_until   timestamptz,
  last_status     integer,
  last_answer     text check (length(last_answer) <= 500),
  last_error      text check (length(last_error) <= 500),
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  primary key (endpoint_key, event_id)
);
comment on table webhook_deliveries is 'PENDING: to be sent. DELIVERED: answered 2xx. FAILED: given up after the last attempt.';
comment on column webhook_deliveries.event_id is 'the webhook-id: reservation and status, since an order comes into a status once';
comment on column webhook_deliveries.payload is 'the bytes that are signed and sent, fixed when the order changed';
comment on column webhook_deliveries.claimed_until is 'a keeper is sending it, or has died in it: nobody else sends it before then';
create index deliveries_due on webhook_deliveries (endpoint_key, next_attempt_at) where status = 'PENDING';
create index deliveries_listing on webhook_deliveries (endpoint_key, status, delivery_no);
create index deliveries_by_age on webhook_deliveries (updated_at);

create function announce_order() returns trigger language plpgsql as $$
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
end $$;
-- A new unpaid order, which comes in batches of hundreds in the rush, costs the look at its status and no more.
create trigger announce_new after insert on sale_orders for each row
  when (new.status <> 'PENDING_PAYMENT') execute function announce_order();
create trigger announce_change after update on sale_orders for each row
  when (new.status <> old.status) execute function announce_order();
