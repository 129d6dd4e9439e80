/**
 * The proof that the chaos run can fail: defects put into copies of the product on purpose, each of which must be found,
 * by a check that is meant for it, within a stated number of seeds.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEFECTS, type Defect } from './defects/defects.ts';
import { OUT, ROOT } from './places.ts';
import { runOnce } from './run.ts';

export type ProveOptions = {
  ratePerSecond: number;
  /** The first seed; the next ones follow it. */
  seed: number;
  ending: AbortSignal;
  say: (line: string) => void;
};

/** What a copy of the product needs to run. */
const PARTS = ['src', 'lua', 'migrations', 'package.json', 'tsconfig.json'];

/** @returns 0 when every defect was found, 1 when one was not */
export async function prove(options: ProveOptions): Promise<number> {
  const lines: string[] = [];
  for (const defect of DEFECTS) lines.push(await findDefect(defect, options));
  for (const line of lines) options.say(line);
  return lines.every((line) => line.startsWith('found')) ? 0 : 1;
}

async function findDefect(defect: Defect, { ratePerSecond, seed: first, ending, say }: ProveOptions): Promise<string> {
  const product = copyWith(defect);
  try {
    for (let n = 1; n <= defect.seeds; n += 1) {
      const seed = first + n - 1;
      say(`\ndefect ${defect.name}, seed ${seed} (${n} of ${defect.seeds})`);
      const { checks, summary } = await runOnce({
        ...{ seed, ratePerSecond, product, ending, say, forMs: defect.minutes * 60_000 },
        preference: defect.preference,
        picture: join(OUT, `${defect.name}-${seed}.svg`),
        logs: join(OUT, `${defect.name}-${seed}-logs`),
      });
      const by = checks.filter(({ findings }) => findings.length > 0).map(({ name }) => name);
      if (by.some((name) => defect.foundBy.includes(name))) {
        return `found      ${defect.name}, by seed ${n} of ${defect.seeds}: ${by.join(', ')}`;
      }
      if (by.length > 0) say(`broken, but not where this defect shows: ${summary}`);
    }
    return `NOT FOUND  ${defect.name}, in ${defect.seeds} seeds`;
  } finally {
    rmSync(product, { recursive: true });
  }
}

/** A copy of the product with the defect in it. @throws when the text that it replaces is not there exactly once */
function copyWith({ name, file, original, replaced }: Defect): string {
  mkdirSync(OUT, { recursive: true });
  const copy = mkdtempSync(join(OUT, `${name}-`));
  for (const part of PARTS) cpSync(join(ROOT, part), join(copy, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const path = join(copy, file);
  const pieces = readFileSync(path, 'utf8').split(original);
  if (pieces.length !== 2) {
    throw new Error(`defect ${name}: ${file} has its text ${pieces.length - 1} times instead of once: write it anew`);
  }
  writeFileSync(path, pieces.join(replaced));
  return copy;
}
