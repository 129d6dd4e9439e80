/**
 * `flashgate rush`: buyers storm a sale over real HTTP, winners pay or do not, and in the end what everyone was told is
 * compared with what the ledger has. The audit has the last word.
 */
import { resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { exitCodeOf, type AuditReport } from '../audit/report.ts';
import { flashgate, type Flashgate } from '../client/client.ts';
import { Crowd } from './crowd.ts';
import { Connections, JsonApi, limitedFetch, target } from './http.ts';
import { compare, isSettled, type Check, type Evidence } from './ledger-compare.ts';
import { readOrders, readPayments, readSale } from './ledger-read.ts';
import { parseRushOptions, WrongUsage, type RushSettings } from './options.ts';
import { renderPage } from './page.ts';
import { showProgress } from './progress.ts';
import { makeReport, renderReport, writeReport } from './report.ts';
import { prepareSale, type SaleState } from './sale.ts';
import { planRush, type Plan } from './schedule.ts';
import { stepFor, Tally } from './tally.ts';
import { Winners } from './winners.ts';

export { rushOptions } from './options.ts';

const LOOK_AGAIN_MS = 500;

type Print = (text: string) => void;
type Secrets = { admin: string; service: string | undefined; provider: string | undefined };
/** `api` with the storefront's token, `admin` with an admin's; `connections` are the buyers', and are measured. */
type Clients = { api: Flashgate; admin: Flashgate; provider: JsonApi; connections: Connections };

/**
 * @param options as commander gives them (`rushOptions`), or the same names with numbers; what is missing takes its default
 * @param env ADMIN_TOKEN; SERVICE_TOKEN unless the API is open; PAYMENT_PROVIDER_URL in place of `--provider-url`;
 *   PAYMENT_PROVIDER_TOKEN if it wants one; DATABASE_URL and REDIS_URL for the audit
 * @returns the exit code: 0 all holds, 1 something does not or the rush could not be run, 2 and 3 as the audit, 64 wrong usage
 */
export async function rushCommand(
  options: Record<string, unknown>,
  env: NodeJS.ProcessEnv,
  print: Print = console.log,
): Promise<number> {
  try {
    const settings = parseRushOptions(options, env);
    return await rush(settings, readSecrets(settings, env), env, print);
  } catch (error) {
    print(`rush: ${error instanceof Error ? error.message : String(error)}`);
    return error instanceof WrongUsage ? 64 : 1;
  }
}

function readSecrets(settings: RushSettings, env: NodeJS.ProcessEnv): Secrets {
  const needed = ['ADMIN_TOKEN', ...(settings.audit ? ['DATABASE_URL', 'REDIS_URL'] : [])];
  const missing = needed.filter((name) => !env[name]);
  if (missing.length > 0) {
    const hint = settings.audit ? ' (the audit wants the two stores; --no-audit leaves it out)' : '';
    throw new WrongUsage(`not set in the environment: ${missing.join(', ')}${hint}`);
  }
  // The tokens are lists, for rotation; any of them will do.
  const first = (list: string | undefined) => list?.split(/\s+/).find((token) => token !== '');
  return {
    admin: first(env.ADMIN_TOKEN) ?? '',
    service: first(env.SERVICE_TOKEN),
    provider: env.PAYMENT_PROVIDER_TOKEN || undefined,
  };
}

async function rush(settings: RushSettings, secrets: Secrets, env: NodeJS.ProcessEnv, print: Print): Promise<number> {
  const timeoutMs = settings.timeout * 1000;
  const { fetch, close } = limitedFetch();
  const limits = { baseUrl: settings.url, fetch, attemptMs: timeoutMs, deadlineMs: 2 * timeoutMs };
  const api = flashgate({ ...limits, token: secrets.service });
  const admin = flashgate({ ...limits, token: secrets.admin });
  const provider = new JsonApi(settings.providerUrl, secrets.provider, timeoutMs);
  try {
    const sale = await prepareSale(settings, admin, api);
    const connections = connect(settings, secrets, sale.saleId);
    try {
      return await storm(settings, sale, { api, admin, provider, connections }, env, print);
    } finally {
      await connections.close();
    }
  } finally {
    await Promise.all([close(), provider.close()]);
  }
}

function connect(settings: RushSettings, secrets: Secrets, saleId: string): Connections {
  const { origin, prefix } = target(settings.url);
  const headers = secrets.service === undefined ? {} : { authorization: `Bearer ${secrets.service}` };
  const path = `${prefix}/sales/${saleId}/reserve`;
  return new Connections(origin, path, headers, settings.connections, settings.timeout * 1000);
}

async function storm(settings: RushSettings, sale: SaleState, clients: Clients, env: NodeJS.ProcessEnv, print: Print) {
  const { saleId, holdSeconds, total: units } = sale;
  const plan = planRush({ ...settings, overSeconds: settings.over, holdSeconds, units });
  print(
    `Rush at sale ${saleId}: ${plan.buyers.length} buyers, ${plan.presses.length} presses due, ${units} units, ` +
      `${settings.arrival} over ${settings.over} s, ${settings.connections} connections, seed ${settings.seed}`,
  );
  const before = new Set((await readOrders(clients.admin, saleId)).keys());
  await readPayments(clients.provider); // a provider out of reach is found before the rush, not after it
  await clients.connections.warm(`${target(settings.url).prefix}/sales/${saleId}`);

  const tally = new Tally(stepFor(settings.over));
  const { crowd, winners } = gather(settings, saleId, plan, clients, tally, before);
  const startedAt = new Date();
  const seconds = await press(crowd, winners, plan, tally, print);
  const [inRush, over] = [tally.answered, tally.course()];
  const { evidence, checks } = await settle(settings, sale, clients, { crowd, winners, tally, before, print });
  const audit = settings.audit ? await runAuditOf(saleId, settings, env, print) : null;

  const course = { startedAt, saleId, units, settings, tally, inRush, seconds, over, winners: winners.count };
  const report = makeReport(course, evidence, checks, audit);
  if (settings.report !== undefined) await writeReport(settings.report, `${JSON.stringify(report, null, 2)}\n`);
  print(renderReport(report));
  if (settings.html !== undefined) {
    await writeReport(settings.html, renderPage(report));
    print(`The report, one file to open in a browser or to send: ${resolve(settings.html)}`);
  }
  const auditCode = audit ? exitCodeOf(audit) : 0;
  if (auditCode !== 0) return auditCode;
  return checks.some(({ failures }) => failures.length > 0) ? 1 : 0;
}

function gather(
  settings: RushSettings,
  saleId: string,
  plan: Plan,
  clients: Clients,
  tally: Tally,
  before: Set<string>,
) {
  const { connections, api, provider } = clients;
  const crowd = new Crowd({
    saleId,
    plan,
    connections,
    tally,
    onWin(buyer, told) {
      // A reservation of an earlier rush with the same seed has had its role then.
      if (!before.has(told.reservationId)) winners.follow(buyer, told);
    },
  });
  const winners: Winners = new Winners({
    saleId,
    api,
    provider,
    roles: plan.roles,
    settleMs: settings.settle * 1000,
    pressAgain: (buyer) => crowd.press(buyer, performance.now(), false),
  });
  return { crowd, winners };
}

/** @returns how long it took until the last reply was in, in seconds */
async function press(crowd: Crowd, winners: Winners, plan: Plan, tally: Tally, print: Print): Promise<number> {
  const progress = showProgress('answers', print, () => ({
    done: tally.answered,
    total: Math.max(plan.presses.length, tally.answered),
    words: `${winners.count} won, ${tally.count('sold_out')} sold out, ${tally.unexpected.length} unexpected`,
  }));
  tally.start();
  const start = performance.now();
  await crowd.rush();
  const seconds = (performance.now() - start) / 1000;
  progress.stop();
  return seconds;
}

type Aftermath = { crowd: Crowd; winners: Winners; tally: Tally; before: Set<string>; print: Print };

/** Waits, bounded, until all that is compared holds: what is still on its way is not yet a lie. */
async function settle(settings: RushSettings, sale: SaleState, clients: Clients, after: Aftermath) {
  const { crowd, winners, tally, before, print } = after;
  const { saleId } = sale;
  // Also the hold of a buyer who never heard of it, won by the last press.
  const lastUnheard = Date.now() + sale.holdSeconds * 1000;
  let acting = true;
  let checks: Check[] = [];
  const progress = showProgress('settling', print, () => ({
    done: checks.filter(({ failures }) => failures.length === 0).length,
    total: Math.max(checks.length, 1),
    words: acting ? 'winners pay, or let their holds lapse' : 'comparisons hold',
  }));
  try {
    await winners.done();
    acting = false;
    const deadline = Math.max(winners.lastExpiry, lastUnheard) + settings.settle * 1000;
    for (;;) {
      const evidence: Evidence = {
        heard: crowd.heard,
        unexpected: tally.unexpected,
        troubles: winners.troubles,
        before,
        quantity: settings.quantity,
        orders: await readOrders(clients.admin, saleId),
        sale: await readSale(clients.admin, saleId),
        payments: await readPayments(clients.provider),
      };
      checks = compare(evidence);
      if (isSettled(checks) || Date.now() > deadline) return { evidence, checks };
      await sleep(LOOK_AGAIN_MS);
    }
  } finally {
    progress.stop();
  }
}

/** Loaded only when asked for: the audit brings the clients of both stores. */
async function runAuditOf(
  saleId: string,
  settings: RushSettings,
  env: NodeJS.ProcessEnv,
  print: Print,
): Promise<AuditReport> {
  const { runAudit } = await import('../audit/audit.ts');
  const { redisPlaceOf } = await import('../audit/redis.ts');
  const { DATABASE_URL: databaseUrl = '' } = env;
  return runAudit({ databaseUrl, ...redisPlaceOf(env), saleId, settleSeconds: settings.settle }, print);
}
