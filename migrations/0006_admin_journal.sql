-- Up Migration

-- What admins did: over the API, from the operations room, or from the command line. A change of a sale or an order is
-- written here in the transaction that makes it. What was refused, or failed, is written after it.
create table admin_journal (
  entry_id   bigint generated always as identity primary key,
  at         timestamptz not null default clock_timestamp(),
  xid        xid8 not null default pg_current_xact_id(),
  who        text not null check (who in ('token', 'session', 'command')),
  session    text check (length(session) between 1 and 64),
  request_id text check (length(request_id) between 1 and 128),
  action     text not null check (action in ('create', 'change', 'resize', 'pause', 'resume', 'end', 'close', 'refund', 'audit', 'rush')),
  sale_id    text not null check (length(sale_id) between 1 and 64),
  outcome    text not null check (outcome in ('done', 'refused', 'failed')),
  reason     text check (length(reason) between 1 and 2000),
  before     jsonb,
  after      jsonb,
  constraint sessions_have_a_name check ((who = 'session') = (session is not null)),
  constraint says_why_it_was_not_done check ((outcome = 'done') = (reason is null))
);
comment on column admin_journal.sale_id is 'no reference: a change of a sale that there is not is refused, and told';
comment on column admin_journal.xid is 'orders the listing so that a reader with a cursor misses nothing, as changed_xid does for orders';
comment on column admin_journal.before is 'what was changed, as it was; after: as it became, or what an audit or a rush found';

create index admin_journal_listing on admin_journal (xid, entry_id);
create index admin_journal_by_sale on admin_journal (sale_id, entry_id);

create trigger append_only before update or delete or truncate on admin_journal
  for each statement execute function append_only();
