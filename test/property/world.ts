/**
 * The real stores, worked on through the program's own functions. Between API and worker lies a queue that the test
 * rules: what it takes, whether it says so, in which order and how often it delivers, what it loses.
 */
import { randomUUID } from 'node:crypto';
import type { Hold } from '../../src/domain/reservation.ts';
import type { Gate } from '../../src/gate/gate.ts';
import { gateKeys } from '../../src/gate/keys.ts';
import type { Stores } from '../../src/operations/stores.ts';
import { ProviderUnavailable, type PaymentProvider } from '../../src/provider/port.ts';
import { formatMessage, parseMessage } from '../../src/queue/message.ts';
import { QueueUnavailable, type Producer } from '../../src/queue/producer.ts';
import type { System } from '../races/system.ts';

/** What becomes of a send: taken; taken, with the answer lost on the way; not taken. */
export type Fate = 'taken' | 'unheard' | 'refused';

export class Queue {
  messages: string[] = [];
  fate: Fate = 'taken';

  /** In the place of the producer. */
  producer = {
    send: (hold: Hold) => {
      if (this.fate !== 'refused') this.messages.push(formatMessage(hold));
      return this.fate === 'taken' ? Promise.resolve() : Promise.reject(new QueueUnavailable(this.fate));
    },
  } as unknown as Producer;

  /** @returns up to `count` messages from anywhere; they stay for another delivery if `keep` */
  receive(from: number, count: number, keep: boolean): Hold[] {
    const holds: Hold[] = [];
    const left = [...this.messages];
    for (let n = 0; n < count && left.length > 0; n += 1) {
      holds.push(...left.splice(from % left.length, 1).map((body) => parseMessage(body)));
    }
    if (!keep) this.messages = left;
    return holds;
  }

  lose(at: number): void {
    if (this.messages.length > 0) this.messages.splice(at % this.messages.length, 1);
  }
}

/** A provider that makes each refund once, whatever it then says. */
export class Provider implements PaymentProvider {
  made = new Map<string, number>();
  failing = false;
  #saleId: string;

  constructor(saleId: string) {
    this.#saleId = saleId;
  }

  refund: PaymentProvider['refund'] = ({ refundId, paymentId, amount }) => {
    if (!paymentId.startsWith(this.#saleId)) return Promise.resolve({ status: 'SUCCEEDED', detail: 'of another walk' });
    this.made.set(refundId, amount);
    if (this.failing) return Promise.reject(new ProviderUnavailable('made, and then nothing was heard'));
    return Promise.resolve({ status: 'SUCCEEDED', detail: null });
  };
  lookUp: PaymentProvider['lookUp'] = ({ refundId }) =>
    Promise.resolve(this.made.has(refundId) ? { status: 'SUCCEEDED', detail: null } : undefined);
}

export class World {
  readonly saleId = randomUUID();
  readonly queue = new Queue();
  readonly provider = new Provider(this.saleId);
  /** What the program said was wrong with itself. */
  readonly errors: string[] = [];
  readonly stores: Stores;
  readonly system: System;

  /** @param gate one without a latch: the model knows of no delay */
  constructor(system: System, gate: Gate) {
    this.system = system;
    const quiet = () => undefined;
    const error = (fields: object, message: string) => void this.errors.push(`${message} ${JSON.stringify(fields)}`);
    this.stores = {
      pool: system.stores.pool,
      gate,
      producer: this.queue.producer,
      log: { debug: quiet, info: quiet, warn: quiet, error, fatal: error },
    };
  }

  /** Moves everything of this sale back in time: holds, marks, messages, orders, parked money, refunds. */
  async passTime(ms: number): Promise<void> {
    const [, , holds, unqueued] = gateKeys(this.saleId);
    const { redis } = this.system;
    const multi = redis.multi();
    for (const [user, text] of Object.entries(await redis.hgetall(holds))) {
      const [id, qty, reservedAt, expiresAt, ...rest] = text.split('|');
      multi.hset(holds, user, [id, qty, Number(reservedAt) - ms, Number(expiresAt) - ms, ...rest].join('|'));
    }
    for (const user of await redis.zrange(unqueued, '0', '-1')) multi.zincrby(unqueued, -ms, user);
    await multi.exec();
    this.queue.messages = this.queue.messages.map((body) => {
      const hold = parseMessage(body);
      return formatMessage({ ...hold, reservedAt: hold.reservedAt - ms, expiresAt: hold.expiresAt - ms });
    });
    await this.#passTimeInLedger(ms);
  }

  /** The database lets nobody change what was promised; its owner may, for this. */
  async #passTimeInLedger(ms: number): Promise<void> {
    const client = await this.system.stores.pool.connect();
    try {
      await client.query('begin');
      await client.query('set local session_replication_role = replica');
      const back = (column: string) => `${column} = ${column} - ${ms} * interval '1 millisecond'`;
      await client.query(`update sale_orders set ${back('reserved_at')}, ${back('expires_at')} where sale_id = $1`, [
        this.saleId,
      ]);
      const own = `where payment_id like $1 || '%'`;
      await client.query(`update payments set ${back('received_at')} ${own}`, [this.saleId]);
      await client.query(`update payment_events set ${back('received_at')} ${own}`, [this.saleId]);
      await client.query(`update refunds set ${back('next_attempt_at')}, ${back('created_at')} ${own}`, [this.saleId]);
      await client.query('commit');
    } finally {
      client.release();
    }
  }

  /** Payments of this sale by id, with their refunds. */
  async payments() {
    const { rows } = await this.system.stores.pool.query<{
      id: string;
      status: string;
      refunds: number;
      sameAmount: boolean;
      refundStatus: string | null;
      refundId: string | null;
      reason: string | null;
      amount: number;
      paid: number;
    }>(
      `select p.payment_id as id, p.status, p.amount::float8 as amount, count(r.payment_id)::int as refunds,
         coalesce(bool_and(r.amount = p.amount), true) as "sameAmount", min(r.status) as "refundStatus",
         min(r.refund_id::text) as "refundId", min(r.reason) as reason,
         (select count(*)::int from sale_orders o where o.reservation_id::text = p.reservation_id and o.status = 'PAID'
            and o.amount = p.amount and o.currency = p.currency) as paid
       from payments p left join refunds r using (payment_id) where p.payment_id like $1 || '%'
       group by p.payment_id order by p.payment_id`,
      [this.saleId],
    );
    return rows;
  }
}
