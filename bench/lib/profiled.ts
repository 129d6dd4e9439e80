/** A server under load with the profiler on. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench } from '../bench.ts';
import { profileClock, summarise, type Summary, type Window } from './profile.ts';
import { freshly, measure, type Press } from './rounds.ts';
import type { Design, Target } from './targets.ts';

/** Loads by name, each pressing at its own sale of a target; given their turns in one server's life. */
export type Loads<K extends string> = Record<K, (target: Target) => Promise<string>>;

/**
 * @param loads what prepares the sale of each load
 * @param rounds how often each has its turn
 * @returns what each load cost the server's main thread, per request
 */
export async function profile<K extends string>(
  bench: Bench,
  design: Design,
  loads: Loads<K>,
  { rounds, ...press }: Press & { rounds: number },
): Promise<Record<K, Summary>> {
  const folder = join(bench.folder, `profile-${performance.now()}`);
  mkdirSync(folder);
  const profiled: Design = { ...design, start: (own) => design.start(own, { profileTo: folder }) };
  const names = Object.keys(loads) as K[];
  const windows = new Map<K, Window[]>(names.map((name) => [name, []]));
  await freshly(bench, profiled, async (target) => {
    for (let n = 0; n < rounds; n += 1) {
      for (const name of names) {
        const saleId = await loads[name](target);
        const from = profileClock();
        await measure(bench, target, saleId, press);
        windows.get(name)?.push({ from, to: profileClock() });
      }
    }
  });
  const requests = rounds * press.requests;
  const summaries = names.map((name) => [name, summarise(folder, windows.get(name) ?? [], requests)]);
  return Object.fromEntries(summaries) as Record<K, Summary>;
}
