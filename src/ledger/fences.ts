/** Fences: a token per shard, drawn from the ledger. Whoever works with an older one is refused, here and at the gate. */
import { StaleToken } from '../domain/outcomes.ts';
import { shardOf } from '../domain/shard.ts';
import { query, type Queryable } from './db.ts';

const DRAW = {
  name: 'draw-token',
  text: `update shard_fences set token = token + 1 where shard = $1 returning token`,
};

/** A new token of the shard, larger than all before. */
export async function drawToken(db: Queryable, shard: number): Promise<number> {
  const [row] = await query<{ token: number }>(db, DRAW, [shard]);
  if (!row) throw new Error(`shard_fences has no row ${shard}`);
  return row.token;
}

const CHECK = {
  name: 'check-token',
  text: `select token from shard_fences where shard = $1 for share`,
};

/**
 * Refuses the transaction of a keeper whose token is old, and keeps a newer one from being drawn until it is over.
 * @param token '' for a caller that needs none: it acts on what is final
 * @throws {StaleToken}
 */
export async function fence(client: Queryable, saleId: string, token: string): Promise<void> {
  if (token === '') return;
  const shard = shardOf(saleId);
  const [row] = await query<{ token: number }>(client, CHECK, [shard]);
  if (row?.token !== Number(token)) {
    throw new StaleToken(
      `shard ${shard}: token ${token} is not the newest (${row?.token ?? 'none'}): another keeper has it`,
    );
  }
}
