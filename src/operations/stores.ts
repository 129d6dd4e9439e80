/** What an operation works on. Operations are what needs more than one store; HTTP, worker and keeper call them. */
import type { Gate } from '../gate/gate.ts';
import type { Pool } from '../ledger/db.ts';
import type { Producer } from '../queue/producer.ts';

export type Stores = { pool: Pool; gate: Gate; producer: Producer; log: Log };

/** The part of pino's logger that is used. */
export type Log = Record<'debug' | 'info' | 'warn' | 'error' | 'fatal', (fields: object, message: string) => void>;
