/** What the run left behind, read once at its end from the stores themselves: rows, the gate, the provider's book. */
import { SQSClient } from '@aws-sdk/client-sqs';
import { Redis } from 'ioredis';
import pg from 'pg';
import type { Payment } from '../src/provider/book.ts';
import { queueDepth } from '../src/queue/depth.ts';
import { deadLetters } from '../src/queue/dead-letters.ts';
import { SALES } from './plan.ts';
import type { System } from './system.ts';

/** Times in epoch milliseconds, amounts in minor units. */
export type Order = {
  id: string;
  saleId: string;
  userId: string;
  qty: number;
  amount: number;
  currency: string;
  status: string;
  reason: string | null;
  reservedAt: number;
  expiresAt: number;
  recordedAt: number;
  changedAt: number;
};
export type LedgerPayment = { id: string; reservationId: string; status: string; receivedAt: number };
export type SaleRow = { saleId: string; total: number; sold: number; paid: number };
export type GateRow = {
  saleId: string;
  stock: number;
  held: number;
  forfeited: number;
  unqueued: number;
  open: boolean;
};

export type Ledger = { orders: Order[]; payments: LedgerPayment[]; sales: SaleRow[] };

const TIMEOUT_MS = 5000;

/** Connections of the driver's own to the servers themselves. */
export class Stores {
  #system: System;
  #pool: pg.Pool;
  #redis: Redis;
  #sqs: SQSClient;

  constructor(system: System) {
    this.#system = system;
    this.#pool = new pg.Pool({ connectionString: system.postgres.url, max: 2 });
    this.#pool.on('error', () => undefined); // the next query says it
    this.#redis = new Redis(system.redis.url, { maxRetriesPerRequest: 5 });
    this.#redis.on('error', () => undefined); // the same
    const { AWS_REGION = '', AWS_ACCESS_KEY_ID = '', AWS_SECRET_ACCESS_KEY = '', SQS_ENDPOINT = '' } = system.queue.env;
    this.#sqs = new SQSClient({
      region: AWS_REGION,
      endpoint: SQS_ENDPOINT,
      credentials: { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY },
    });
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
    this.#sqs.destroy();
    await this.#pool.end();
  }

  /** What the ledger still has to do, by name; nothing of it when it is quiet. */
  async todo(): Promise<Record<string, number>> {
    const { rows } = await this.#pool.query<Record<string, number>>(`
      select (select count(*)::int from sale_orders where status = 'PENDING_PAYMENT') as "orders unpaid",
        (select count(*)::int from sale_orders where gate_released_at is null
          and status in ('EXPIRED', 'CANCELLED', 'REJECTED', 'REFUNDED')) as "orders not given back",
        (select count(*)::int from payments where status = 'PARKED') as "payments parked",
        (select count(*)::int from payment_events where state = 'parked') as "events parked",
        (select count(*)::int from refunds where status <> 'SUCCEEDED') as "refunds not made"`);
    return rows[0] ?? {};
  }

  async ledger(): Promise<Ledger> {
    const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`;
    const orders = await this.#pool.query<Order>(`
      select reservation_id as id, sale_id as "saleId", user_id as "userId", qty, amount::float8, currency, status, reason,
        ${ms('reserved_at')} as "reservedAt", ${ms('expires_at')} as "expiresAt", ${ms('recorded_at')} as "recordedAt",
        ${ms('changed_at')} as "changedAt" from sale_orders`);
    const payments = await this.#pool.query<LedgerPayment>(`
      select payment_id as id, reservation_id as "reservationId", status, ${ms('received_at')} as "receivedAt" from payments`);
    const sales = await this.#pool.query<SaleRow>(`
      select sale_id as "saleId", total, sold, (select coalesce(sum(qty), 0)::int from sale_orders o
        where o.sale_id = sale_stock.sale_id and status = 'PAID') as paid from sale_stock`);
    return { orders: orders.rows, payments: payments.rows, sales: sales.rows };
  }

  async gate(): Promise<GateRow[]> {
    return Promise.all(
      SALES.map(async ({ saleId }) => {
        const key = (part: string) => `{sale:${saleId}}:${part}`;
        const [stock, [state, held, forfeited], unqueued] = await Promise.all([
          this.#redis.get(key('stock')),
          this.#redis.hmget(key('sale'), 'state', 'held', 'forfeited'),
          this.#redis.zcard(key('unqueued')),
        ]);
        const open = stock !== null && state != null && state !== 'loading';
        return { saleId, stock: Number(stock), held: Number(held), forfeited: Number(forfeited), unqueued, open };
      }),
    );
  }

  /** Messages in the queue, seen or not. */
  async messages(): Promise<number> {
    const { waiting, inFlight } = await queueDepth(this.#sqs, this.#system.queueUrl, TIMEOUT_MS);
    return waiting + inFlight;
  }

  /** Sends dead letters back, as the one who runs it would once the trouble is over. @returns how many */
  async replayDeadLetters(): Promise<number> {
    return (await deadLetters(this.#sqs, this.#system.queueUrl, true, 1000)).filter(({ replayed }) => replayed).length;
  }

  /** The provider's own book. */
  async payments(): Promise<Payment[]> {
    const answer = await fetch(new URL('/payments', this.#system.provider.url));
    return ((await answer.json()) as { payments: Payment[] }).payments;
  }
}
