/** Reads what `--cpu-prof` wrote: where the time went, in microseconds per request. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

type Node = { id: number; callFrame: { functionName: string; url: string; lineNumber: number } };
type Profile = { nodes: Node[]; samples: number[]; timeDeltas: number[]; startTime: number };
export type Entry = { what: string; us: number };
export type Summary = { functions: Entry[]; places: Entry[]; total: number };

/** Now, on the clock that V8 stamps its samples with: microseconds of the monotonic clock. */
export const profileClock = (): number => Number(process.hrtime.bigint() / 1000n);

/**
 * @param folder the profile's; it has exactly one
 * @param window of the load, by {@link profileClock}: what came before and after is not counted
 * @returns self time per request by function and by place (package or own file), without idle time, largest first
 */
export function summarise(folder: string, window: { from: number; to: number }, requests: number): Summary {
  const files = readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'));
  if (files.length !== 1) throw new Error(`${folder} has ${files.length} profiles, not one`);
  const profile = JSON.parse(readFileSync(join(folder, String(files[0])), 'utf8')) as Profile;
  const nodes = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const [functions, places] = [new Map<string, number>(), new Map<string, number>()];
  let now = profile.startTime;
  profile.samples.forEach((id, n) => {
    now += profile.timeDeltas[n] ?? 0;
    const frame = nodes.get(id);
    // A delta is the time since the sample before: it belongs to that one, but over many samples it comes to the same.
    const us = profile.timeDeltas[n + 1] ?? 0;
    if (!frame || frame.functionName === '(idle)' || now < window.from || now > window.to) return;
    const place = placeOf(frame.url);
    const what = `${frame.functionName || '(anonymous)'}${place === '' ? '' : ` ${place}:${frame.lineNumber + 1}`}`;
    functions.set(what, (functions.get(what) ?? 0) + us);
    places.set(place || frame.functionName, (places.get(place || frame.functionName) ?? 0) + us);
  });
  const sorted = (sums: Map<string, number>) =>
    [...sums].map(([what, us]) => ({ what, us: us / requests })).sort((a, b) => b.us - a.us);
  return {
    functions: sorted(functions),
    places: sorted(places),
    total: [...places.values()].reduce((a, b) => a + b, 0) / requests,
  };
}

/** The package, or our own file, or Node's module. */
function placeOf(url: string): string {
  if (!url.startsWith('file:')) return url;
  const path = fileURLToPath(url);
  const inPackage = /.*node_modules\/((?:@[^/]+\/)?[^/]+\/.*)$/.exec(path)?.[1];
  return inPackage ?? path.replace(/.*\/(?=(?:src|bench)\/)/, '');
}
