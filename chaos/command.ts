/** `npm run chaos`: its options, one run or the proof, and the exit code. */
import { join } from 'node:path';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { OUT, ROOT } from './places.ts';
import { PREFERENCES, type PreferenceName } from './preferences.ts';
import { prove } from './prove.ts';
import { runOnce } from './run.ts';

/** A seed whose half a minute has every kind of fault but those that make the gate forget: no winner may be refused in it. */
export const QUICK = { seed: 94, minutes: 0.5 };
const WRONG_USAGE = 64;

type Given = {
  seed?: number;
  minutes?: number;
  rate: number;
  gate: 'drawn' | 'keeps' | 'loses';
  prefer?: PreferenceName;
  quick?: true;
  prove?: true;
  out?: string;
  product: string;
};

/**
 * @param onEnd is told what to do when the run is to end before its time
 * @returns 0: every check holds; 1: one does not, or the run could not be carried out; 64: wrong usage
 */
export async function chaosCommand(
  args: string[],
  say: (line: string) => void,
  onEnd: (act: () => void) => void,
): Promise<number> {
  const aborting = new AbortController();
  const ending = aborting.signal;
  onEnd(() => aborting.abort());
  const program = describe();
  try {
    program.parse(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
    throw error;
  }
  const given = program.opts<Given>();
  if (given.prove) return prove({ say, ending, ratePerSecond: given.rate, seed: given.seed ?? 1 });
  const drawn = given.quick ? QUICK.seed : Math.floor(Math.random() * 1_000_000);
  const seed = given.seed ?? drawn;
  const { green } = await runOnce({
    seed,
    forMs: (given.minutes ?? (given.quick ? QUICK.minutes : 2)) * 60_000,
    ratePerSecond: given.rate,
    losesGate: given.gate === 'drawn' ? undefined : given.gate === 'loses',
    preference: given.prefer,
    product: given.product,
    picture: given.out ?? join(OUT, `seed-${seed}.svg`),
    logs: join(OUT, `seed-${seed}-logs`),
    ...{ ending, say },
  });
  if (!green) say(`Again: npm run chaos -- --seed ${seed}${again(given)}`);
  return green ? 0 : 1;
}

function describe(): Command {
  return new Command('chaos')
    .description('The whole system as separate processes, under a seeded load, broken by a seeded script of faults.')
    .exitOverride()
    .option('--seed <n>', 'what to draw load and faults from (default: any)', number)
    .option('--minutes <n>', 'how long load and faults last (default: 2)', number)
    .option('--rate <n>', 'visits per second; each is one to a dozen requests', number, 40)
    .addOption(
      new Option('--gate <what>', 'whether Redis may lose what it has')
        .choices(['drawn', 'keeps', 'loses'])
        .default('drawn'),
    )
    .addOption(
      new Option('--prefer <name>', 'do one thing more often than chance would').choices(Object.keys(PREFERENCES)),
    )
    .option('--quick', `half a minute with seed ${QUICK.seed}`)
    .option('--prove', 'put three defects into copies of the product and require that each is found')
    .option('--out <file>', 'where the timeline goes as SVG (default: .flashgate/chaos/seed-N.svg)')
    .option('--product <folder>', 'run another copy of the product', ROOT);
}

function again({ minutes, rate, gate, prefer, quick }: Given): string {
  const parts = [
    ...(minutes === undefined ? [] : [`--minutes ${minutes}`]),
    ...(quick ? ['--quick'] : []),
    ...(rate === 40 ? [] : [`--rate ${rate}`]),
    ...(gate === 'drawn' ? [] : [`--gate ${gate}`]),
    ...(prefer === undefined ? [] : [`--prefer ${prefer}`]),
  ];
  return parts.map((part) => ` ${part}`).join('');
}

function number(text: string): number {
  if (!/^\d{1,9}(\.\d+)?$/.test(text)) throw new InvalidArgumentError('a number is expected');
  return Number(text);
}
