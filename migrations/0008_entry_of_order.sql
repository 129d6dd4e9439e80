-- Up Migration

-- The sale of an entry is its order's: every statement that writes one takes both from the order's own row, and neither
-- can change afterwards (guard_order, append_only). That the sale exists follows from the order's reference to it; looking
-- a second time took an eighth of what recording orders costs. That both sales are the same, which this reference never
-- said, is what the audit checks (journal_entry_has_order).
alter table ledger_entries drop constraint ledger_entries_sale_id_fkey;
