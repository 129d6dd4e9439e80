-- What the plain designs keep in Postgres: the stock, an order per buyer, and a journal. One of each per sale.
create table stock (
  sale_id text primary key,
  total   integer not null,
  sold    integer not null default 0,
  amount  bigint not null,
  constraint never_oversold check (sold <= total)
) with (fillfactor = 50);

create table orders (
  reservation_id uuid primary key default gen_random_uuid(),
  sale_id        text not null references stock,
  user_id        text not null,
  qty            integer not null,
  amount         bigint not null,
  reserved_at    timestamptz not null default now(),
  expires_at     timestamptz not null default now() + interval '10 minutes',
  unique (sale_id, user_id)
);

create table journal (
  entry_id       bigint generated always as identity primary key,
  sale_id        text not null,
  reservation_id uuid not null references orders,
  delta          integer not null
);

-- The rest of the shop, of which the rush should leave alone what it does not need.
create table products (
  product_id integer primary key,
  name       text not null,
  price      bigint not null
);
insert into products select n, 'product ' || n, n * 100 from generate_series(1, 10000) as n;
analyze products;
