-- Up Migration

-- A PAID order that the shop gives the money back for is REFUNDED: a status of its own, which remembers whether its
-- units were returned to the sale or left it for good.

alter table sale_orders
  add column units_returned boolean,
  drop constraint sale_orders_status_check,
  add constraint sale_orders_status_check
    check (status in ('PENDING_PAYMENT', 'PAID', 'EXPIRED', 'CANCELLED', 'REJECTED', 'REFUNDED')),
  drop constraint live_is_not_released,
  add constraint live_is_not_released
    check (gate_released_at is null or status in ('EXPIRED', 'CANCELLED', 'REJECTED', 'REFUNDED')),
  add constraint refunded_says_what_became_of_its_units check ((status = 'REFUNDED') = (units_returned is not null));
comment on column sale_orders.units_returned is 'for REFUNDED: true, its units are for sale again; false, they left the sale and its total';

-- Statements of the version before name three of these four: they are served by it too.
drop index orders_to_release;
create index orders_to_release on sale_orders (sale_id, reservation_id)
  where status in ('EXPIRED', 'CANCELLED', 'REJECTED', 'REFUNDED') and gate_released_at is null;

-- PENDING_PAYMENT ends as PAID, EXPIRED or CANCELLED; PAID may end once more, as REFUNDED. What was promised never changes.
create or replace function guard_order() returns trigger language plpgsql as $$
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
end $$;

alter table ledger_entries
  drop constraint ledger_entries_kind_check,
  add constraint ledger_entries_kind_check check (kind in ('order', 'expiry', 'cancel', 'refund'));

-- by_shop: the shop asked for it. at_provider: it was made at the provider without us. refunded: more money came for an
-- order that was refunded by then.
alter table refunds
  drop constraint refunds_reason_check,
  add constraint refunds_reason_check check (reason in ('expired', 'cancelled', 'rejected', 'already_paid', 'amount_mismatch',
    'unknown_reservation', 'by_shop', 'at_provider', 'refunded'));

-- A capture looks whether its payment was refunded before we heard of it.
create index refunds_reported on payment_events (payment_id) where type = 'refund.succeeded';
