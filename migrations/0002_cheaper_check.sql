-- Up Migration

-- The same rule for a buyer's id. To Postgres' regular expressions a bound of 128 is 128 states: of all that recording
-- orders does, this check took the largest single share of the time.
alter table sale_orders
  drop constraint sale_orders_user_id_check,
  add constraint sale_orders_user_id_check check (length(user_id) <= 128 and user_id ~ '^[\x21-\x7e]+$');
