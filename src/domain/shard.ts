/** Which of the 256 shards a sale belongs to: keepers share the work by shards, and fences are per shard. */
import { createHash } from 'node:crypto';

export const SHARDS = 256;

/** The first four bytes of sha1(saleId), big-endian, modulo 256. */
export function shardOf(saleId: string): number {
  return createHash('sha1').update(saleId).digest().readUInt32BE(0) % SHARDS;
}
