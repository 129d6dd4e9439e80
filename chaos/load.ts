/** The load: the merchant opens the sales, visits come as the plan says, the merchant changes a sale in between. */
import { setTimeout as sleep } from 'node:timers/promises';
import { visit } from './buyer.ts';
import { CHANGING, drawVisit, SALES, type PlanOptions, type SalePlan } from './plan.ts';
import type { Random } from './random.ts';
import type { Change } from './script.ts';
import type { World } from './world.ts';

const DAY_MS = 86_400_000;
const CHANGE_TRIES = 3;
/** For the APIs to come up: a start takes a second, or twenty where the machine is busy. */
const UP_TRIES = 300;
const UP_PAUSE_MS = 200;
/** A visit that is this late is not caught up with: the machine is too slow for the load, and that is said. */
const LATE_MS = 2000;

export type Loaded = { visits: number; late: number; failures: string[] };

/** Creates the sales, through whichever API is up, and waits until each API knows them. */
export async function openSales(world: World): Promise<void> {
  for (const plan of SALES) {
    for (let tries = 0; ; tries += 1) {
      const answer = await world.ask(tries % 2 === 0 ? 0 : 1, 'PUT', `/admin/sales/${plan.saleId}`, {
        admin: true,
        body: settings(plan),
      });
      if (answer && answer.status < 300) break;
      if (tries > UP_TRIES) throw new Error(`sale ${plan.saleId} could not be created: ${JSON.stringify(answer)}`);
      await sleep(UP_PAUSE_MS);
    }
  }
  for (const api of [0, 1] as const) {
    for (const { saleId } of SALES) await untilKnown(world, api, saleId);
  }
}

/** A sale of a moment ago is another API's secret for a moment. */
async function untilKnown(world: World, api: 0 | 1, saleId: string): Promise<void> {
  for (let tries = 0; tries < UP_TRIES; tries += 1) {
    const status = await fetch(`${world.apiUrl(api)}/sales/${saleId}`).then(
      (answer) => answer.status,
      () => undefined, // it does not listen yet
    );
    if (status === 200) return;
    await sleep(UP_PAUSE_MS);
  }
  throw new Error(`an API does not come to know sale ${saleId}`);
}

function settings({ total, holdSeconds, maxPerReservation, price }: SalePlan) {
  const now = Date.now();
  return {
    ...{ name: 'A sale', total, holdSeconds, maxPerReservation, price: { amount: price, currency: 'EUR' } },
    startsAt: new Date(now - 60_000).toISOString(),
    endsAt: new Date(now + DAY_MS).toISOString(),
  };
}

/** Runs the load for a time. Resolves when every visit has ended, those of late payers too. */
export async function runLoad(
  world: World,
  random: Random,
  forMs: number,
  options: PlanOptions & { changes: Change[] },
): Promise<Loaded> {
  const start = performance.now();
  const loaded: Loaded = { visits: 0, late: 0, failures: [] };
  const under = new Set<Promise<void>>();
  const changing = makeChanges(world, options.changes, start);
  const seed = random.fork('load');
  for (let n = 1, atMs = 0; ; n += 1) {
    const plan = drawVisit(seed, n, atMs, options);
    atMs = plan.atMs;
    if (atMs > forMs || world.ending.aborted) break;
    const waitMs = start + atMs - performance.now();
    if (waitMs > 0) await sleep(waitMs, undefined, { signal: world.ending }).catch(() => undefined);
    if (waitMs < -LATE_MS) loaded.late += 1;
    loaded.visits += 1;
    const going = visit(world, plan)
      .catch((error: unknown) => {
        if (!world.ending.aborted) loaded.failures.push(`visit ${n}: ${String(error)}`);
      })
      .finally(() => under.delete(going));
    under.add(going);
  }
  await Promise.all([...under, changing]);
  return loaded;
}

/** The merchant tries each change a few times; one that is refused or gets no answer is left at that. */
async function makeChanges(world: World, changes: Change[], start: number): Promise<void> {
  const plan = SALES.find(({ saleId }) => saleId === CHANGING);
  if (!plan) throw new Error(`there is no sale ${CHANGING}`);
  const now = settings(plan);
  for (const { atMs, does, value } of changes) {
    const waitMs = start + atMs - performance.now();
    if (waitMs > 0) await sleep(waitMs, undefined, { signal: world.ending }).catch(() => undefined);
    if (world.ending.aborted) return;
    if (does === 'resize') now.total = value;
    if (does === 'reprice') now.price = { amount: value, currency: 'EUR' };
    const path = `/admin/sales/${CHANGING}`;
    for (let tries = 0; tries < CHANGE_TRIES; tries += 1) {
      const answer =
        does === 'pause' || does === 'resume'
          ? await world.ask(tries % 2 === 0 ? 0 : 1, 'POST', `${path}/${does}`, { admin: true })
          : await world.ask(tries % 2 === 0 ? 0 : 1, 'PUT', path, { admin: true, body: now });
      if (answer && answer.status < 500) break;
      await sleep(300);
    }
  }
}
