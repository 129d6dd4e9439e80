/** How long a unit that came back waits for its next buyer, and how long a winner waits for the order in the ledger. */
import type { Bench, Section } from '../bench.ts';
import { table } from '../lib/markdown.ts';
import { line, measure, told, warmUp } from '../lib/rounds.ts';
import { digits, quantile } from '../lib/stats.ts';
import { DESIGNS, type Target } from '../lib/targets.ts';

const CONNECTIONS = 200;
/** Buyers per second who press on while a unit comes back, and for how many seconds: it comes back 0.3 to 0.4 s after the first. */
const PRESSING = { rate: 1_000, seconds: 1, connections: 50 };

type Lag = { winners: number; p50: number; p99: number; rate: number };

/** The part `times`: milliseconds. */
export async function times(bench: Bench): Promise<Section> {
  const raw: string[] = [];
  const tell = (said: string) => {
    raw.push(said);
    bench.say(said);
  };
  const { same, another } = await returns(bench, tell);
  const slower = Math.max(...another) >= Math.max(...same) ? another : same;
  const lags: Lag[] = [];
  const target = await DESIGNS.allCores.start(bench);
  try {
    await warmUp(bench, target, CONNECTIONS, 2_000);
    for (const winners of bench.sizes.times.winners) lags.push(await lag(bench, target, winners, tell));
  } finally {
    await target.stop();
  }
  return {
    title: 'From a return to the next sale, from a win to the order',
    text: [
      `A sold-out sale, ${PRESSING.rate.toLocaleString('en-US')} buyers per second pressing; one holder cancels. From the moment at which the cancellation was sent to the next buyer's hold, by the gate's clock; ${same.length} times each, in turn. A process that cancels knows at once that a unit is back; another one sees it with its next look at the gate.`,
      ...table(
        ['', 'p50 ms', 'max ms'],
        ['cancelled at the process at which buyers press', ...middleAndMost(same)],
        ['cancelled at another process', ...middleAndMost(another)],
      ),
      `As many units as buyers, so that everybody wins, as fast as they are answered over ${CONNECTIONS} connections, a process per core and one worker. From the gate's decision (\`reservedAt\`) to the transaction that recorded the order (\`recorded_at\`), whose commit follows within milliseconds. The queue is a stand-in on this machine.`,
      ...table(
        ['winners', 'wins per second', 'p50 ms', 'p99 ms'],
        ...lags.map(({ winners, rate, p50, p99 }) => [
          winners.toLocaleString('en-US'),
          digits(rate),
          digits(p50),
          digits(p99),
        ]),
      ),
    ],
    charts: [
      {
        file: 'lag.svg',
        title: 'From ok to the order in the ledger, p99 ms, by winners',
        bars: lags.map(({ winners, p99 }) => ({ name: winners.toLocaleString('en-US'), value: p99 })),
      },
    ],
    figures: {
      'return-p50': digits(quantile(slower, 0.5)),
      'return-max': digits(Math.max(...slower)),
      'lag-first': digits(lags[0]?.p99 ?? Number.NaN),
      'lag-last': digits(lags.at(-1)?.p99 ?? Number.NaN),
      'wins-per-second': digits(lags.at(-1)?.rate ?? Number.NaN),
    },
    raw,
  };
}

const middleAndMost = (waits: number[]) => [digits(quantile(waits, 0.5)), digits(Math.max(...waits))];

/** Waits in milliseconds, where the process at which buyers press cancels by itself, and where another one does. */
type Waits = { same: number[]; another: number[] };

async function returns(bench: Bench, tell: (said: string) => void): Promise<Waits> {
  const waits: Waits = { same: [], another: [] };
  const same = await DESIGNS.flashgate.start(bench);
  const another = await DESIGNS.flashgate.start(bench);
  try {
    await warmUp(bench, same, PRESSING.connections, 500);
    const saleId = await same.newSale(1);
    let holder = await win(same, saleId, 'first');
    for (let n = 0; n < bench.sizes.times.returns; n += 1) {
      for (const [who, canceller] of [['same', same] as const, ['another', another] as const]) {
        const next = await cancelAndWait(bench, same, canceller, saleId, holder);
        waits[who].push(next.reservedAt - next.cancelledAt);
        holder = next;
      }
    }
    for (const [who, all] of Object.entries(waits))
      tell(`cancelled at ${who}: return to next sale, ms: ${all.join(' ')}`);
    return waits;
  } finally {
    await same.stop();
    await another.stop();
  }
}

/** @returns who has the unit next, and when the cancellation was sent */
async function cancelAndWait(
  bench: Bench,
  target: Target,
  canceller: Target,
  saleId: string,
  holder: Holder,
): Promise<Holder & { cancelledAt: number }> {
  const { rate, seconds, connections } = PRESSING;
  const pressing = measure(bench, target, saleId, { connections, requests: rate * seconds, rate });
  await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 100)); // at no fixed time between two looks
  const cancelledAt = Date.now();
  await cancel(canceller, saleId, holder);
  await pressing;
  const next = await holderOf(bench, saleId);
  if (next.reservationId === holder.reservationId) throw new Error('the unit that came back was not sold again');
  return { ...next, cancelledAt };
}

type Holder = { userId: string; reservationId: string; reservedAt: number };

async function win({ port, token }: Target, saleId: string, userId: string): Promise<Holder> {
  const reply = await fetch(`http://127.0.0.1:${port}/sales/${saleId}/reserve`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, connection: 'close' },
    body: JSON.stringify({ userId }),
  });
  if (reply.status !== 202) throw new Error(`the only buyer did not win: ${await reply.text()}`);
  const won = (await reply.json()) as { reservationId: string; reservedAt: string };
  return { userId, reservationId: won.reservationId, reservedAt: Date.parse(won.reservedAt) };
}

async function cancel({ port, token }: Target, saleId: string, { reservationId, userId }: Holder): Promise<void> {
  const url = `http://127.0.0.1:${port}/sales/${saleId}/reservations/${reservationId}?userId=${userId}`;
  const headers = { authorization: `Bearer ${token}`, connection: 'close' };
  const reply = await fetch(url, { method: 'DELETE', headers });
  if (reply.status !== 204) throw new Error(`the hold was not cancelled: ${await reply.text()}`);
}

/** Who holds the sale's only unit, as the gate has it. */
async function holderOf({ redis }: Bench, saleId: string): Promise<Holder> {
  const [[userId, hold] = []] = Object.entries(await redis.hgetall(`{sale:${saleId}}:holds`));
  const [reservationId = '', , reservedAt] = hold?.split('|') ?? [];
  return { userId: userId ?? '', reservationId, reservedAt: Number(reservedAt) };
}

async function lag(bench: Bench, target: Target, winners: number, tell: (said: string) => void): Promise<Lag> {
  const saleId = await target.newSale(winners);
  const round = await measure(bench, target, saleId, { connections: CONNECTIONS, requests: winners });
  await target.recount(saleId, told(round));
  const { rows } = await bench.pool.query<{ p50: number; p99: number }>(
    `select percentile_disc(0.5) within group (order by ms) as p50, percentile_disc(0.99) within group (order by ms) as p99
     from (select extract(epoch from recorded_at - reserved_at)::float8 * 1000 as ms from sale_orders where sale_id = $1) as lag`,
    [saleId],
  );
  const { p50 = Number.NaN, p99 = Number.NaN } = rows[0] ?? {};
  tell(`${line(`${winners} winners`, round)}  ok to order ms p50 ${digits(p50)} p99 ${digits(p99)}`);
  return { winners, p50, p99, rate: round.rate };
}
