/** Key names of the gate. All keys of a sale share the hash tag {sale:ID}, so every script is single-slot on a cluster. */

export type GateKeys = readonly [stock: string, buyers: string, holds: string, unqueued: string, sale: string];

/** In the order in which every gate script takes them as KEYS. */
export function gateKeys(saleId: string): GateKeys {
  const tag = `{sale:${saleId}}`;
  return [`${tag}:stock`, `${tag}:buyers`, `${tag}:holds`, `${tag}:unqueued`, `${tag}:sale`];
}
