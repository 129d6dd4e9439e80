-- Up Migration

-- Changes of the shop's webhook endpoints are in the admin journal too: an entry is about a sale, or about an endpoint.
alter table admin_journal
  alter column sale_id drop not null,
  add column endpoint_id text check (length(endpoint_id) between 1 and 64),
  add constraint about_a_sale_or_an_endpoint check ((sale_id is null) <> (endpoint_id is null)),
  drop constraint admin_journal_action_check,
  add constraint admin_journal_action_check check (action in ('create', 'change', 'resize', 'pause', 'resume', 'end',
    'close', 'refund', 'audit', 'rush', 'delete', 'rotate', 'redeliver'));
comment on column admin_journal.endpoint_id is 'no reference: an endpoint may be deleted, and what was done to it stays told';
