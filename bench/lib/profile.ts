/** Reads what `--cpu-prof` wrote: where the time went, in microseconds per request. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

type Node = {
  id: number;
  callFrame: { functionName: string; url: string; lineNumber: number };
  children?: number[];
};
type Profile = { nodes: Node[]; samples: number[]; timeDeltas: number[]; startTime: number };
export type Entry = { what: string; us: number };
/**
 * Microseconds per request, largest first. `functions`: self time. `parts`: by the package, or the part of Node.js, that
 * a sample's own code or the nearest caller outside of Node.js belongs to.
 */
export type Summary = { functions: Entry[]; parts: Entry[]; total: number };
/** Of a load, by {@link profileClock}. */
export type Window = { from: number; to: number };

/** Now, on the clock that V8 stamps its samples with: microseconds of the monotonic clock. */
export const profileClock = (): number => Number(process.hrtime.bigint() / 1000n);

/**
 * Main thread only, and without idle time, to which V8 counts what Node.js does before it calls JavaScript: waiting for
 * sockets, and reading them.
 * @param folder the profile's; it has exactly one
 * @param windows what was before, between and after is not counted
 * @param requests in all windows together
 */
export function summarise(folder: string, windows: Window[], requests: number): Summary {
  const files = readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'));
  if (files.length !== 1) throw new Error(`${folder} has ${files.length} profiles, not one`);
  const profile = JSON.parse(readFileSync(join(folder, String(files[0])), 'utf8')) as Profile;
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const partOf = partsOf(profile);
  const [functions, parts] = [new Map<string, number>(), new Map<string, number>()];
  let now = profile.startTime;
  profile.samples.forEach((id, n) => {
    now += profile.timeDeltas[n] ?? 0;
    const frame = nodes.get(id)?.callFrame;
    const us = profile.timeDeltas[n + 1] ?? 0; // until the next sample
    if (!frame || frame.functionName === '(idle)' || !windows.some(({ from, to }) => now >= from && now <= to)) return;
    const place = placeOf(frame.url);
    const what = `${frame.functionName || '(anonymous)'}${place === '' ? '' : ` ${place}:${frame.lineNumber + 1}`}`;
    functions.set(what, (functions.get(what) ?? 0) + us);
    const part = partOf(id);
    parts.set(part, (parts.get(part) ?? 0) + us);
  });
  const sorted = (sums: Map<string, number>) =>
    [...sums].map(([what, us]) => ({ what, us: us / requests })).sort((a, b) => b.us - a.us);
  const total = [...parts.values()].reduce((a, b) => a + b, 0) / requests;
  return { functions: sorted(functions), parts: sorted(parts), total };
}

/** The package, or our own file, or Node's module. */
function placeOf(url: string): string {
  if (!url.startsWith('file:')) return url;
  const path = fileURLToPath(url);
  const inPackage = /.*node_modules\/((?:@[^/]+\/)?[^/]+\/.*)$/.exec(path)?.[1];
  return inPackage ?? path.replace(/.*\/(?=(?:src|bench)\/)/, '');
}

function partsOf({ nodes }: Profile): (id: number) => string {
  const found = new Map<number, string>();
  const walk = (node: Node, caller: string) => {
    const { functionName, url } = node.callFrame;
    const own = /^\((?:garbage collector|program)\)$/.test(functionName) ? functionName : partAt(placeOf(url));
    const part = own ?? caller;
    found.set(node.id, part);
    for (const id of node.children ?? []) walk(byId.get(id) as Node, part);
  };
  const byId = new Map(nodes.map((node) => [node.id, node]));
  if (nodes[0]) walk(nodes[0], 'Node.js'); // the root
  return (id) => found.get(id) ?? 'Node.js';
}

/** Undefined for what belongs to its caller. */
function partAt(place: string): string | undefined {
  if (place === '' || place.startsWith('node:')) return undefined;
  if (/^(?:src|bench)\//.test(place)) return place.startsWith('src/') ? 'flashgate' : 'the plain design';
  if (/^@(?:aws-sdk|smithy|aws)\//.test(place)) return 'AWS SDK';
  return /^(?:@[^/]+\/)?[^/]+/.exec(place)?.[0];
}
