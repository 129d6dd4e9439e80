/** Crashes: a scene is set, a process dies at a point of it, is started again, and all that was left is repaired. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { runAudit } from '../../src/audit/audit.ts';
import { auditCommand } from '../../src/audit/command.ts';
import type { CrashPoint } from '../../src/crash.ts';
import type { Hold } from '../../src/domain/reservation.ts';
import { startKeeper } from '../../src/keeper/keeper.ts';
import { httpProvider } from '../../src/provider/http.ts';
import { startProvider, type Provider } from '../../src/provider/standin.ts';
import { keeperOptions, workerOptions } from '../../src/wiring.ts';
import { startWorker } from '../../src/worker/worker.ts';
import { SECRET } from '../ledger/house.ts';
import { openReceiver, type Receiver } from '../webhooks/house.ts';
import * as h from './house.ts';
import { serve, start, type Running } from './process.ts';

/** Stores, a payment provider and the shop's receiver of webhooks, for one scene or several. */
export type Stage = { house: h.House; provider: Provider; shop: Receiver };

export type Scene = Stage & {
  saleId: string;
  /** Messages in the queue when the scene began. */
  messages: number;
  /** Winners who were told so: each must have an order in the end, or have given the unit back. */
  told: Hold[];
};

export type Flow = {
  /** Where it dies. */
  point: CrashPoint;
  /** What dies: a command of the command line, and what it is doing. */
  command: string[];
  doing: string;
  /** How things are when it is started. */
  before?: (scene: Scene) => Promise<unknown>;
  /** The request that an API dies of. */
  request?: (scene: Scene) => { method: string; path: string; body?: string; headers?: Record<string, string> };
  /** What is left: it died there, and not before or after it. */
  left: (scene: Scene) => Promise<unknown>;
  /** Whether who asked asks again once it is back; nobody does when it is false. */
  again?: boolean;
  /** How things are in the end, besides that the audit holds. */
  end?: (scene: Scene) => Promise<unknown>;
  /** The gate has lost something in this scene: a winner may have been refused. */
  gateForgot?: boolean;
};

/** For processes that are started on a machine that is busy. */
const CRASHING = {
  ...{
    UNQUEUED_GRACE_MS: '1600',
    KEEPER_INTERVAL_MS: '50',
    LOG_LEVEL: 'info',
    PROVIDER_TIMEOUT_MS: '300',
    SHUTDOWN_DEADLINE_MS: '9000',
    WEBHOOKS_ALLOW_PRIVATE: 'true',
  },
};

/** The sale that scenes by themselves are about. */
export const SALE = 'the-sale';

export async function openStage(): Promise<Stage> {
  const webhookUrl = 'http://127.0.0.1:9/nobody-listens';
  const provider = await startProvider({ webhookUrl, webhookSecret: SECRET, logLevel: 'silent' });
  return {
    provider,
    shop: await openReceiver(),
    house: await h.openHouse({ env: { ...CRASHING, PAYMENT_PROVIDER_URL: provider.url } }),
  };
}

export async function closeStage({ house, provider, shop }: Stage): Promise<void> {
  await h.closeHouse(house);
  await shop.close();
  await provider.close();
}

/** The provider knows a payment only that was made with it. */
export async function capture({ provider }: Stage, { reservationId, amount, currency }: Hold): Promise<void> {
  const body = JSON.stringify({ paymentId: `pay-${reservationId}`, reservationId, amount, currency });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${provider.url}/payments`, { method: 'POST', headers, body });
  expect(answer.status).toBe(201);
}

/** Sets the scene, lets the process die in it, and looks at what is left. */
export async function die(flow: Flow, stage: Stage, saleId = SALE): Promise<Scene> {
  await h.changeSale(stage.house, saleId, { total: 5 });
  await stage.house.directory.refresh();
  const scene = { ...stage, saleId, told: [], messages: await h.messages(stage.house) };
  await flow.before?.(scene);
  await crash(flow, scene);
  await flow.left(scene);
  return scene;
}

/** One flow by itself. */
export async function play(flow: Flow): Promise<void> {
  const stage = await openStage();
  try {
    const scene = await die(flow, stage);
    await repair(flow.command, stage, []);
    await expectRepaired(flow, scene);
    await expectSound(stage, flow.gateForgot);
  } finally {
    await closeStage(stage);
  }
}

async function crash(flow: Flow, scene: Scene): Promise<void> {
  const env = { ...scene.house.settings, CRASH_AT: flow.point };
  let child: Running;
  if (flow.request) {
    const api = await serve(env);
    child = api;
    await expect(send(flow, scene, api.url), 'nobody is told anything').rejects.toThrow();
  } else {
    child = start(flow.command, env);
  }
  const end = await child.ended;
  expect(end, child.said.map((line) => JSON.stringify(line)).join('\n')).toEqual({ code: null, signal: 'SIGKILL' });
  // Its leases end, as time would see to.
  const leases = await scene.house.redis.keys('lease:*');
  if (leases.length > 0) await scene.house.redis.del(...leases);
}

async function send({ request }: Flow, scene: Scene, url: string): Promise<Response> {
  const { method, path, body, headers } = request?.(scene) ?? { method: 'GET', path: '/' };
  return fetch(url + path, {
    method,
    ...(body === undefined ? {} : { body }),
    headers: {
      authorization: `Bearer ${h.SHORT.ADMIN_TOKEN}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
  });
}

/**
 * What died is started again, beside all the rest of the system, until nothing is left to be done.
 * @param again requests that are sent again, once an API is back
 */
export async function repair(command: string[], stage: Stage, again: [Flow, Scene][]): Promise<void> {
  const { house } = stage;
  const { stores, sqs, leases } = house.wired;
  const parts: { stop: () => Promise<unknown> }[] = [];
  try {
    if (command[0] === 'serve') {
      const api = await serve(house.settings);
      parts.push(api);
      for (const [flow, scene] of again) await askAgain(flow, scene, api.url);
    } else {
      parts.push(start(command, house.settings));
    }
    if (command[0] !== 'work') parts.push(startWorker(stores, sqs, workerOptions(house.config)));
    if (command[0] !== 'keep') {
      const { PAYMENT_PROVIDER_URL: baseUrl = '', PROVIDER_TIMEOUT_MS: timeoutMs } = house.config;
      const provider = httpProvider({ baseUrl, token: '', timeoutMs });
      parts.push(startKeeper({ stores, sqs, leases, provider }, keeperOptions(house.config)));
    }
    await h.until(() => isSettled(stage), 40_000);
  } finally {
    for (const part of parts) await part.stop();
  }
}

async function askAgain(flow: Flow, scene: Scene, url: string): Promise<void> {
  const answer = await send(flow, scene, url);
  const text = await answer.text();
  expect(answer.status, `${flow.point}, ${flow.doing}: ${text}`).toBeLessThan(300);
  if (!flow.request?.(scene).path.endsWith('/reserve')) return;
  const { userId, reservationId } = JSON.parse(text) as { userId: string; reservationId: string };
  const hold = await scene.house.gate.hold(scene.saleId, userId);
  if (hold?.reservationId !== reservationId)
    throw new Error(`${userId} was told of ${reservationId}, which nobody holds`);
  scene.told.push(hold);
}

/** Nothing is on its way: no message, no refund, no webhook, no order whose units are to be given back; and the audit holds. */
async function isSettled({ house }: Stage): Promise<boolean> {
  await sleep(100); // an audit is not for nothing
  const { rowCount } = await house.db.query(`select 1 from refunds where status <> 'SUCCEEDED'
    union all select 1 from sale_orders where status not in ('PENDING_PAYMENT', 'PAID') and gate_released_at is null
    union all select 1 from webhook_deliveries where status = 'PENDING'
    union all select 1 from checkout_pages where session_id is not null and closed_at is null`);
  if ((rowCount ?? 0) > 0 || (await h.messages(house)) > 0) return false;
  return (await runAudit({ ...house, graceMs: 0 }, () => undefined)).verdict === 'holds';
}

/** Everybody who was told so has an order, or has given the unit back; and what else the flow says of its end. */
export async function expectRepaired(flow: Flow, scene: Scene): Promise<void> {
  const { house } = scene;
  await flow.end?.(scene);
  for (const hold of scene.told) {
    const order = await h.orderOf(house, hold);
    const held = (await house.gate.hold(hold.saleId, hold.userId))?.reservationId;
    if (order?.status === 'PENDING_PAYMENT' || order?.status === 'PAID') {
      expect(held).toBe(hold.reservationId);
    } else {
      expect(order, `${hold.userId} was told of ${hold.reservationId}`).toMatchObject({ marked: true });
      expect(held).not.toBe(hold.reservationId);
    }
  }
}

/** `flashgate audit` exits 0; and unless the gate has lost something, no winner was refused. */
export async function expectSound({ house }: Stage, gateForgot = false): Promise<void> {
  if (!gateForgot) expect(await h.rejected(house)).toEqual([]);
  const env = { DATABASE_URL: house.databaseUrl, REDIS_URL: house.redisUrl, AUDIT_GRACE_MS: '0' };
  const lines: string[] = [];
  expect(await auditCommand({}, env, (line) => lines.push(line)), lines.join('\n')).toBe(0);
}
