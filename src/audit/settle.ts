/**
 * Looks again until what was found is gone or the settle time is over. On a running system two stores cannot be read at
 * one instant, so a mismatch counts only if the very same one is still there after that time.
 */
import type { Finding, Result, SaleFigures, Unjudged } from './report.ts';

/** What one look at one part (a sale, or what belongs to no sale) gave. */
export type Look = { figures: SaleFigures[]; results: Result[]; unjudged: Unjudged[] };

type State = { look: Look; /** By performance.now(): until then it may still change. */ until: number };

const LOOK_AGAIN_MS = 1000;

/**
 * @param look gives a look at each of the parts asked for; undefined asks for all
 * @param settleMs how long a mismatch must last to count. What could not be judged is given the same time, and what was
 *   judged late is given it anew
 */
export async function lookUntilSettled(
  look: (parts: Set<string> | undefined) => Promise<Map<string, Look>>,
  settleMs: number,
  log: (line: string) => void,
): Promise<Look[]> {
  const states = new Map<string, State>();
  for (const [part, first] of await look(undefined)) {
    states.set(part, { look: first, until: performance.now() + settleMs });
  }
  for (;;) {
    const now = performance.now();
    const open = [...states].filter(([, state]) => now < state.until && !isSound(state.look)).map(([part]) => part);
    if (open.length === 0) return [...states.values()].map((state) => state.look);
    const longest = Math.max(...open.map((part) => (states.get(part)?.until ?? now) - now));
    log(`not settled yet: ${open.join(', ')}; looking again for up to ${Math.ceil(longest / 1000)} s`);
    await new Promise((resolve) => setTimeout(resolve, Math.min(LOOK_AGAIN_MS, longest)));
    const again = await look(new Set(open));
    for (const part of open) {
      const state = states.get(part);
      const latest = again.get(part);
      if (state && latest) states.set(part, next(state, latest, settleMs));
    }
  }
}

function isSound({ results, unjudged }: Look): boolean {
  return unjudged.length === 0 && results.every(({ findings }) => findings.length === 0);
}

function next({ look, until }: State, latest: Look, settleMs: number): State {
  const judgedLate = look.unjudged.length > 0 && latest.unjudged.length === 0;
  return {
    look: { ...latest, results: stillThere(look.results, latest.results) },
    until: judgedLate ? performance.now() + settleMs : until,
  };
}

/**
 * Of a check seen before, the findings that were there then and are there now. A check that was not carried out this
 * time keeps what it had: nobody has seen it mended.
 */
export function stillThere(before: Result[], now: Result[]): Result[] {
  const keyOf = ({ name, saleId }: Result) => `${name} ${saleId ?? ''}`;
  const earlier = new Map(before.map((result) => [keyOf(result), result]));
  const merged = now.map((result) => {
    const seen = earlier.get(keyOf(result));
    if (!seen) return result;
    earlier.delete(keyOf(result));
    const subjects = new Set(seen.findings.map(({ subject }: Finding) => subject));
    return { ...result, findings: result.findings.filter(({ subject }) => subjects.has(subject)) };
  });
  return [...merged, ...earlier.values()];
}
