/** One run: start everything, load and faults side by side, wait until it is quiet, judge, end everything. */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { exitCodeOf, runAudit } from '../src/audit/audit.ts';
import { Faults } from './faults.ts';
import { Stores } from './ledger.ts';
import { openSales, runLoad } from './load.ts';
import { Model } from './model.ts';
import { PREFERENCES, type PreferenceName } from './preferences.ts';
import { Random } from './random.ts';
import { reportAnswers, reportChecks, reportFaults, summary } from './report.ts';
import { describeFault, drawScript, MEMBERS, type Script } from './script.ts';
import { SETTINGS } from './settings.ts';
import { sellOneMore, settle } from './settle.ts';
import { System } from './system.ts';
import { drawTimeline } from './timeline.ts';
import { holds, judge, type Check } from './verdict.ts';
import { Watch } from './watch.ts';
import { World } from './world.ts';

export type RunOptions = {
  seed: number;
  forMs: number;
  ratePerSecond: number;
  losesGate?: boolean | undefined;
  preference?: PreferenceName | undefined;
  /** The folder of the product that is run. */
  product: string;
  /** Where the picture goes. */
  picture: string;
  /** Where the processes' logs go if the run is red. */
  logs: string;
  ending: AbortSignal;
  say: (line: string) => void;
};

export type RunResult = { green: boolean; checks: Check[]; summary: string };

/** @throws when the run could not be carried out; nothing is left running in any case */
export async function runOnce(options: RunOptions): Promise<RunResult> {
  const { seed, forMs, say, ending } = options;
  const random = new Random(seed);
  const preference = options.preference && PREFERENCES[options.preference];
  const losesGate = options.losesGate ?? preference?.losesGate;
  const script = drawScript(random, { forMs, losesGate, refrain: preference?.refrain });
  announce(options, script);
  const system = await System.start({ product: options.product, say, env: preference?.env });
  const stores = new Stores(system);
  try {
    const result = await carryOut(options, script, random, system, stores);
    if (!result.green) keepLogs(system, options);
    return result;
  } catch (error) {
    keepLogs(system, options);
    if (ending.aborted) throw new Error('the run was ended before its time', { cause: error });
    throw error;
  } finally {
    await stores.close();
    await system.stop();
  }
}

function announce({ seed, forMs, ratePerSecond, preference, say }: RunOptions, script: Script): void {
  const gate = script.losesGate ? 'may lose what it promised' : 'keeps its word: no winner may be refused';
  say(`chaos seed ${seed}: ${forMs / 1000} s, ${ratePerSecond} visits/s; the gate ${gate}`);
  if (preference) say(`with a preference: ${preference}`);
  for (const fault of script.faults) say(describeFault(fault));
  for (const { atMs, does, value } of script.changes) {
    say(`       ${(atMs / 1000).toFixed(1).padStart(6)} s  the merchant: ${does}${value > 0 ? ` ${value}` : ''}`);
  }
}

async function carryOut(
  options: RunOptions,
  script: Script,
  random: Random,
  system: System,
  stores: Stores,
): Promise<RunResult> {
  const { forMs, ratePerSecond, ending, say } = options;
  const startedAt = Date.now();
  const model = new Model(startedAt);
  const apis = [system.apiUrl('api-1'), system.apiUrl('api-2')] as const;
  const world = new World(model, apis, system.provider.url, ending);
  const faults = new Faults(system, ending);
  await openSales(world);
  const watch = new Watch(system.redis.url, system.postgres.url);
  const { fates } = (options.preference && PREFERENCES[options.preference]) ?? {};
  try {
    const loading = runLoad(world, random, forMs, { ratePerSecond, changes: script.changes, fates });
    await faults.run(script.faults);
    say(`the faults are over after ${seconds(startedAt)} s`);
    const loaded = await loading;
    if (loaded.late > 0) say(`${loaded.late} of ${loaded.visits} visits were late: this machine is busy`);
    const lastBuyers = await sellOneMore(world);
    const settled = await settle(stores, ending);
    if (ending.aborted) throw new Error('asked to end');
    say(`quiet after ${(settled.afterMs / 1000).toFixed(1)} s more; ${settled.deadLetters} dead letters sent back`);
    const audit = await runAuditOn(system);
    await watch.stop();
    const checks = judge({
      ...{ model, struck: faults.struck, settled, lastBuyers, audit, watch, failures: loaded.failures },
      ...{ ledger: await stores.ledger(), gate: await stores.gate(), book: await stores.payments() },
      ownEnds: MEMBERS.flatMap((name) =>
        system
          .member(name)
          .ownEnds.filter(({ started }) => started)
          .map(({ how, upMs }) => `${name} ended by itself after ${(upMs / 1000).toFixed(0)} s: ${how}`),
      ),
    });
    return conclude(options, checks, faults, model, startedAt);
  } finally {
    await watch.stop();
    await world.close();
  }
}

async function runAuditOn(system: System) {
  const report = await runAudit(
    {
      databaseUrl: system.postgres.url,
      redisUrl: system.redis.url,
      graceMs: 0, // it is quiet: no hold is on its way any more
      overdueMs: 20_000,
      parkedGraceMs: Number(SETTINGS.PARKED_GRACE_MS),
      settleSeconds: 10,
    },
    () => undefined,
  );
  return {
    exitCode: exitCodeOf(report),
    checks: report.checks.length,
    findings: [
      ...report.checks.filter(({ broken }) => broken > 0).map((check) => JSON.stringify(check)),
      ...report.unjudged.map((unjudged) => JSON.stringify(unjudged)),
    ],
  };
}

function conclude(
  { seed, say, picture }: RunOptions,
  checks: Check[],
  { struck }: Faults,
  model: Model,
  startedAt: number,
): RunResult {
  const green = holds(checks);
  const line = summary(seed, struck, checks);
  say(reportFaults(struck, green));
  say(reportAnswers(model.answers));
  say(reportChecks(checks));
  mkdirSync(dirname(picture), { recursive: true });
  writeFileSync(picture, drawTimeline({ title: `chaos ${line}`, startedAt, struck, answers: model.answers }));
  say(`timeline: ${picture}`);
  say(line);
  return { green, checks, summary: line };
}

function keepLogs(system: System, { logs, say }: RunOptions): void {
  cpSync(join(system.folder, 'logs'), logs, { recursive: true });
  say(`the processes' logs: ${logs}`);
}

const seconds = (since: number) => ((Date.now() - since) / 1000).toFixed(1);
