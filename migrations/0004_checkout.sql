-- Up Migration

-- Pages on which a reservation is paid, made at the payment provider for it. Remembered so that one that is asked for
-- twice is the same, and so that it is closed when the hold ends. The reservation may still be in the queue: there is no
-- order to refer to.
create table checkout_pages (
  reservation_id  uuid primary key,
  sale_id         text not null references sales,
  hold_expires_at timestamptz not null,
  expires_at      timestamptz not null,
  session_id      text unique check (length(session_id) between 1 and 255),
  url             text check (length(url) between 1 and 8192),
  closed_at       timestamptz,
  attempts        integer not null default 0 check (attempts >= 0),
  next_attempt_at timestamptz not null default now(),
  constraint made_as_a_whole check ((session_id is null) = (url is null)),
  constraint only_what_was_made_is_closed check (closed_at is null or session_id is not null)
);
comment on column checkout_pages.expires_at is 'what the provider is asked for: the same whenever it is asked again, since a provider takes one idempotency key for one question';
comment on column checkout_pages.session_id is 'the provider''s name for the page; null until its answer has come';
create index pages_to_close on checkout_pages (next_attempt_at) where session_id is not null and closed_at is null;
