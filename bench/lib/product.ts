/** What the rest of the shop asks for in the bench: one product by its number, from a table that no sale touches. */
import type { QueryConfig } from 'pg';

/** As many as bench/peers/schema.sql puts there, numbered from 1. */
export const PRODUCTS = 10_000;

/** The same query whoever sends it, prepared once per connection. */
export function productQuery(productId: number): QueryConfig {
  return { name: 'product', text: 'select name, price from products where product_id = $1', values: [productId] };
}
