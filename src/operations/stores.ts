/** What an operation works on. Operations are what needs more than one store; HTTP, worker and keeper call them. */
import type { Gate } from '../gate/gate.ts';
import type { Pool } from '../ledger/db.ts';
import type { Producer } from '../queue/producer.ts';

export type Stores = { pool: Pool; gate: Gate; producer: Producer; log: Log };

/** The part of pino's logger that is used. */
export type Log = Record<'debug' | 'info' | 'warn' | 'error' | 'fatal', (fields: object, message: string) => void>;

/**
 * The token with which to work on a sale: a keeper's, by which an older owner is refused. '' needs none: whoever acts on
 * what is final.
 * @throws {StaleToken} when the keeper does not hold the sale's shard any more
 */
export type TokenOf = (saleId: string) => string;
export const noToken: TokenOf = () => '';
