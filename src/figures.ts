/**
 * What the keeper shows of the stores when it is asked for metrics. Of sales, and of their orders, each keeper shows
 * those whose shard it holds: add them up. Of queue, refunds and parked money every keeper shows the same: take one.
 */
import { Gauge, type Registry } from 'prom-client';
import type { Config } from './config.ts';
import { OrderStatus } from './domain/reservation.ts';
import { shardOf } from './domain/shard.ts';
import type { GateFigures } from './gate/gate.ts';
import { backlog, ordersByStatus, refundBacklog, soldUnits, type Backlog, type SoldUnits } from './ledger/backlog.ts';
import { queueDepth } from './queue/depth.ts';
import { Reading } from './reading.ts';
import type { Wired } from './wiring.ts';

/** Sales shown by name, per keeper; what the others have is added up. Closed sales are not shown at all. */
export const SALES_SHOWN = 50;
/** No sale can have this id. */
const OTHERS = '(others)';

const KEEP_MS = 5000;
const PATIENCE_MS = 1000;

/** A sale's units in both stores; `gate` is undefined when it is not loaded. */
export type SaleUnits = SoldUnits & { gate: GateFigures | undefined };

export type Figures = ReturnType<typeof figuresFrom>;

/** How each figure is read: at most every few seconds, and only when somebody asks. */
export function figuresFrom({ stores, sqs, leases }: Pick<Wired, 'stores' | 'sqs' | 'leases'>, config: Config) {
  const { pool, gate } = stores;
  const held = async () => {
    const shards = new Set(leases.shards());
    return (await soldUnits(pool)).filter(({ saleId }) => shards.has(shardOf(saleId)));
  };
  const reading = <T>(read: () => Promise<T>) => new Reading(read, { keepMs: KEEP_MS, patienceMs: PATIENCE_MS });
  return {
    leases: () => leases.shards().length,
    redis: reading(() => gate.check().then(() => true)),
    queue: reading(() => queueDepth(sqs, config.SQS_QUEUE_URL, config.QUEUE_TIMEOUT_MS)),
    backlog: reading(() => backlog(pool)),
    refunds: reading(() => refundBacklog(pool)),
    orders: reading(async () => {
      const sales = await held();
      return ordersByStatus(
        pool,
        sales.map(({ saleId }) => saleId),
      );
    }),
    units: reading(async () => {
      const units: SaleUnits[] = [];
      // One after the other: a figure may be a moment old, and buyers come first.
      for (const sale of await held()) units.push({ ...sale, gate: await gate.figures(sale.saleId) });
      return units;
    }),
  };
}

/** A gauge's present values: its labels, and how much. */
type Values = [labels: Record<string, string>, value: number][];
type AddGauge = (name: string, help: string, labelNames: string[], read: () => Promise<Values | undefined>) => void;

export function registerFigures(registry: Registry, figures: Figures): void {
  const gauge: AddGauge = (name, help, labelNames, read) => {
    new Gauge({
      ...{ name, help, labelNames, registers: [registry] },
      async collect() {
        const values = await read();
        this.reset(); // what is gone, or not known, is not shown
        if (values === undefined && labelNames.length === 0) this.remove();
        for (const [labels, value] of values ?? []) this.set(labels, value);
      },
    });
  };
  ownGauges(gauge, figures);
  ledgerGauges(gauge, figures);
  salesGauges(gauge, figures);
}

function ownGauges(gauge: AddGauge, figures: Figures): void {
  gauge('flashgate_leases_held', 'Shards that this keeper looks after', [], () =>
    Promise.resolve([[{}, figures.leases()]]),
  );
  gauge('flashgate_store_up', 'Whether the store answered this keeper when it was last asked', ['store'], () => {
    const stores = { redis: figures.redis, postgres: figures.backlog, queue: figures.queue };
    const states = Object.entries(stores).map(async ([store, reading]): Promise<Values[number]> => {
      return [{ store }, (await reading.latest()) === undefined ? 0 : 1];
    });
    return Promise.all(states);
  });
  gauge('flashgate_queue_messages', 'Messages in the queue, approximately; the same from every keeper', ['state'], () =>
    given(figures.queue, ({ waiting, inFlight, deadLetters }) => {
      const values: Values = [
        [{ state: 'waiting' }, waiting],
        [{ state: 'in_flight' }, inFlight],
      ];
      return deadLetters === null ? values : [...values, [{ state: 'dead' }, deadLetters]];
    }),
  );
}

const UNMADE = ['PENDING', 'SUBMITTED', 'FAILED'] as const;

function ledgerGauges(gauge: AddGauge, { backlog: waiting, refunds, orders }: Figures): void {
  gauge('flashgate_orders', 'Orders of living sales of this keeper’s shards, by status', ['status'], () =>
    given(orders, (rows) =>
      OrderStatus.options.map((status) => [{ status }, rows.find((row) => row.status === status)?.count ?? 0]),
    ),
  );
  gauge('flashgate_refunds', 'Refunds that are not made, by status; the same from every keeper', ['status'], () =>
    given(refunds, (rows) =>
      UNMADE.map((status) => [{ status }, rows.find((row) => row.status === status)?.count ?? 0]),
    ),
  );
  gauge('flashgate_refunds_oldest_seconds', 'Age of the oldest refund of a status', ['status'], () =>
    given(refunds, (rows) =>
      UNMADE.map((status) => [{ status }, rows.find((row) => row.status === status)?.oldestSeconds ?? 0]),
    ),
  );
  const one = (name: string, help: string, of: keyof Backlog) => {
    gauge(name, `${help}; the same from every keeper`, [], () => given(waiting, (row) => [[{}, row[of]]]));
  };
  one('flashgate_overdue_oldest_seconds', 'How long the oldest unpaid order is over its deadline', 'overdueSeconds');
  one('flashgate_unreleased_orders', 'Ended orders of which the gate was not yet seen to hold nothing', 'unreleased');
  one('flashgate_parked_payments', 'Payments that wait for their order', 'parked');
  one('flashgate_parked_oldest_seconds', 'Age of the oldest payment that waits for its order', 'parkedSeconds');
  one('flashgate_webhooks_pending', 'Webhooks that are still to be delivered to the shop', 'webhooks');
}

type Loaded = SaleUnits & { gate: GateFigures };

function salesGauges(gauge: AddGauge, { units }: Figures): void {
  const loaded = (sales: SaleUnits[]) => sales.filter((sale): sale is Loaded => sale.gate !== undefined);
  gauge('flashgate_ledger_units', 'Units of living sales in the ledger', ['sale', 'kind'], () =>
    given(units, (sales) => bySale(sales, { total: ({ total }) => total, sold: ({ sold }) => sold })),
  );
  gauge('flashgate_gate_units', 'Units of living sales at the gate', ['sale', 'kind'], () =>
    given(units, (sales) =>
      bySale(loaded(sales), {
        total: ({ gate }) => gate.total,
        stock: ({ gate }) => gate.stock,
        held: ({ gate }) => gate.held,
        forfeited: ({ gate }) => gate.forfeited,
      }),
    ),
  );
  gauge(
    'flashgate_drift_units',
    'Units held at the gate and not sold (side gate), or sold and not held (side ledger)',
    ['sale', 'side'],
    () =>
      given(units, (sales) =>
        bySale(
          loaded(sales),
          {
            gate: ({ gate, sold }) => Math.max(0, gate.held - sold),
            ledger: ({ gate, sold }) => Math.max(0, sold - gate.held),
          },
          'side',
        ),
      ),
  );
  gauge('flashgate_unqueued_holds', 'Holds of living sales that are not known to be in the queue', [], () =>
    given(units, (sales) => [[{}, loaded(sales).reduce((sum, { gate }) => sum + gate.unqueued, 0)]]),
  );
  gauge('flashgate_gates_not_loaded', 'Living sales of this keeper’s shards whose gate is not loaded', [], () =>
    given(units, (sales) => [[{}, sales.filter(({ gate }) => gate === undefined).length]]),
  );
}

/** Figures of each sale that is shown by name, and of all others together. */
function bySale<S extends SaleUnits>(sales: S[], kinds: Record<string, (sale: S) => number>, label = 'kind'): Values {
  const groups = Map.groupBy(
    sales.map((sale, n) => ({ name: n < SALES_SHOWN ? sale.saleId : OTHERS, sale })),
    ({ name }) => name,
  );
  return [...groups].flatMap(([name, members]) =>
    Object.entries(kinds).map(([kind, of]): Values[number] => [
      { sale: name, [label]: kind },
      members.reduce((sum, { sale }) => sum + of(sale), 0),
    ]),
  );
}

async function given<T>(reading: Reading<T>, values: (read: T) => Values): Promise<Values | undefined> {
  const read = await reading.latest();
  return read === undefined ? undefined : values(read);
}
