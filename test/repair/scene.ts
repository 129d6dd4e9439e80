/** One crash: a scene is set, a process dies at a point of it, and all that was left is repaired. */
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
import * as h from './house.ts';
import { serve, start, type Running } from './process.ts';

export type Scene = {
  house: h.House;
  saleId: string;
  /** Winners who were told so: each must have an order in the end, or have given the unit back. */
  told: Hold[];
  provider: Provider;
  env: Record<string, string>;
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
  LOG_LEVEL: 'info',
  KEEPER_INTERVAL_MS: '50',
  PROVIDER_TIMEOUT_MS: '300',
  SHUTDOWN_DEADLINE_MS: '9000',
};

export async function play(flow: Flow): Promise<void> {
  const provider = await startProvider({
    webhookUrl: 'http://127.0.0.1:9/nobody',
    webhookSecret: SECRET,
    logLevel: 'silent',
  });
  const house = await h.openHouse({ env: { ...CRASHING, PAYMENT_PROVIDER_URL: provider.url } });
  try {
    const scene = { house, provider, told: [], saleId: await h.newSale(house, { total: 5 }), env: house.settings };
    await flow.before?.(scene);
    await crash(flow, scene);
    await flow.left(scene);
    await repair(flow, scene);
    await flow.end?.(scene);
    for (const hold of scene.told) await expectKept(scene, hold);
    if (!flow.gateForgot) expect(await h.rejected(house)).toEqual([]);
    const { databaseUrl, redisUrl } = house;
    const env = { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, AUDIT_GRACE_MS: '0' };
    const lines: string[] = [];
    expect(await auditCommand({}, env, (line) => lines.push(line)), lines.join('\n')).toBe(0);
  } finally {
    await h.closeHouse(house);
    await provider.close();
  }
}

async function crash(flow: Flow, scene: Scene): Promise<void> {
  const env = { ...scene.env, CRASH_AT: flow.point };
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

/** What died is started again, beside all the rest of the system, until nothing is left to be done. */
async function repair(flow: Flow, scene: Scene): Promise<void> {
  const { house, env } = scene;
  const { stores, sqs, leases } = house.wired;
  const [command] = flow.command;
  const parts: { stop: () => Promise<unknown> }[] = [];
  try {
    if (command === 'serve') {
      const api = await serve(env);
      parts.push(api);
      if (flow.again !== false) {
        const answer = await send(flow, scene, api.url);
        expect(answer.status, await answer.clone().text()).toBeLessThan(300);
        if (flow.request?.(scene).path.endsWith('/reserve')) scene.told.push(await heldAs(answer, scene));
      }
    } else {
      parts.push(start(flow.command, env));
    }
    if (command !== 'work') parts.push(startWorker(stores, sqs, workerOptions(house.config)));
    if (command !== 'keep') {
      const { PAYMENT_PROVIDER_URL: baseUrl = '', PROVIDER_TIMEOUT_MS: timeoutMs } = house.config;
      const provider = httpProvider({ baseUrl, token: '', timeoutMs });
      parts.push(startKeeper({ stores, sqs, leases, provider }, keeperOptions(house.config)));
    }
    await h.until(() => isSettled(scene), 20_000);
  } finally {
    for (const part of parts) await part.stop();
  }
}

async function heldAs(answer: Response, { house, saleId }: Scene): Promise<Hold> {
  const { userId, reservationId } = (await answer.json()) as { userId: string; reservationId: string };
  const hold = await house.gate.hold(saleId, userId);
  if (hold?.reservationId !== reservationId)
    throw new Error(`${userId} was told ${reservationId}, which the gate has not`);
  return hold;
}

/** The audit holds, with no grace for anything; no message and no refund is on its way. */
async function isSettled({ house }: Scene): Promise<boolean> {
  const { databaseUrl, redisUrl } = house;
  const { rowCount } = await house.db.query(`select 1 from refunds where status <> 'SUCCEEDED'
    union all select 1 from sale_orders where status not in ('PENDING_PAYMENT', 'PAID') and gate_released_at is null`);
  if ((rowCount ?? 0) > 0 || (await h.messages(house)) > 0) return false;
  return (await runAudit({ databaseUrl, redisUrl, graceMs: 0 }, () => undefined)).verdict === 'holds';
}

async function expectKept({ house }: Scene, hold: Hold): Promise<void> {
  const order = await h.orderOf(house, hold);
  if (order?.status === 'PENDING_PAYMENT' || order?.status === 'PAID') {
    expect(await house.gate.hold(hold.saleId, hold.userId)).toMatchObject({ reservationId: hold.reservationId });
  } else {
    expect(order, `${hold.userId} was told ok`).toMatchObject({ marked: true });
    expect((await house.gate.hold(hold.saleId, hold.userId))?.reservationId).not.toBe(hold.reservationId);
  }
}
