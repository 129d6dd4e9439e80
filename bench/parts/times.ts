/** How long a unit that came back waits for its next buyer, and how long a winner waits for the order in the ledger. */
import type { Bench, Section } from '../bench.ts';
import { table } from '../lib/markdown.ts';
import { line, measure, told, warmUp } from '../lib/rounds.ts';
import { digits, quantile } from '../lib/stats.ts';
import { DESIGNS, type Target } from '../lib/targets.ts';

const CONNECTIONS = 200;
/** Buyers per second who press on while a unit comes back, and for how many seconds at most. */
const PRESSING = { rate: 1_000, seconds: 1.5, connections: 50 };

type Lag = { winners: number; p50: number; p99: number; rate: number };

export async function times(bench: Bench): Promise<Section> {
  const raw: string[] = [];
  const tell = (said: string) => {
    raw.push(said);
    bench.say(said);
  };
  const one = await returns(bench, DESIGNS.flashgate.start, tell);
  const all = await returns(bench, DESIGNS.allCores.start, tell);
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
      `A sold-out sale, ${PRESSING.rate.toLocaleString('en-US')} buyers per second pressing; one holder cancels. From the moment at which the cancellation was sent to the next buyer's hold, by the gate's clock; ${one.length} times.`,
      ...table(
        ['', 'p50 ms', 'max ms'],
        ['one process', digits(quantile(one, 0.5)), digits(Math.max(...one))],
        ['a process per core', digits(quantile(all, 0.5)), digits(Math.max(...all))],
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
      'return-p50': digits(quantile(one, 0.5)),
      'return-max': digits(Math.max(...one)),
      'lag-first': digits(lags[0]?.p99 ?? Number.NaN),
      'lag-last': digits(lags.at(-1)?.p99 ?? Number.NaN),
      'wins-per-second': digits(lags.at(-1)?.rate ?? Number.NaN),
    },
    raw,
  };
}

async function returns(
  bench: Bench,
  start: (bench: Bench) => Promise<Target>,
  tell: (said: string) => void,
): Promise<number[]> {
  const target = await start(bench);
  try {
    await warmUp(bench, target, PRESSING.connections, 500);
    const saleId = await target.newSale(1);
    let holder = await win(target, saleId, 'first');
    const waits: number[] = [];
    for (let n = 0; n < bench.sizes.times.returns; n += 1) {
      const { rate, seconds, connections } = PRESSING;
      const pressing = measure(bench, target, saleId, { connections, requests: rate * seconds, rate });
      await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 100));
      const cancelled = Date.now();
      await cancel(target, saleId, holder);
      await pressing;
      const next = await holderOf(bench, saleId);
      if (next.reservationId === holder.reservationId) throw new Error('the unit that came back was not sold again');
      waits.push(next.reservedAt - cancelled);
      holder = next;
    }
    tell(`${target.name}: return to next sale, ms: ${waits.join(' ')}`);
    return waits;
  } finally {
    await target.stop();
  }
}

type Holder = { userId: string; reservationId: string; reservedAt: number };

async function win({ port, token }: Target, saleId: string, userId: string): Promise<Holder> {
  const reply = await fetch(`http://127.0.0.1:${port}/sales/${saleId}/reserve`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ userId }),
  });
  if (reply.status !== 202) throw new Error(`the only buyer did not win: ${await reply.text()}`);
  const won = (await reply.json()) as { reservationId: string; reservedAt: string };
  return { userId, reservationId: won.reservationId, reservedAt: Date.parse(won.reservedAt) };
}

async function cancel({ port, token }: Target, saleId: string, { reservationId, userId }: Holder): Promise<void> {
  const url = `http://127.0.0.1:${port}/sales/${saleId}/reservations/${reservationId}?userId=${userId}`;
  const reply = await fetch(url, { method: 'DELETE', headers: { authorization: `Bearer ${token}` } });
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
