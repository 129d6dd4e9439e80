/** API processes of a test's own, all on one gate, and what buyers and admins ask of each of them over HTTP. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { ADMIN, saleSettings, SERVICE, settings } from '../http/api.ts';
import { runtime } from '../support/runtime.ts';

const running = new Set<ChildProcess>();
afterAll(() => running.forEach((child) => child.kill('SIGKILL')));

export type Answer = { status: number; code: string; body: Record<string, unknown> };

/** What one process answers. `code` is the problem's code, or the outcome of a hold. */
export class Seller {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  press(saleId: string, userId: string, qty = 1): Promise<Answer> {
    return this.#ask('POST', `/sales/${saleId}/reserve`, SERVICE, { userId, qty });
  }

  cancel(saleId: string, { reservationId, userId }: Record<string, unknown>): Promise<Answer> {
    return this.#ask(
      'DELETE',
      `/sales/${saleId}/reservations/${String(reservationId)}?userId=${String(userId)}`,
      SERVICE,
    );
  }

  get(saleId: string): Promise<Answer> {
    return this.#ask('GET', `/sales/${saleId}`, SERVICE);
  }

  put(saleId: string, changes: Record<string, unknown>): Promise<Answer> {
    return this.#ask('PUT', `/admin/sales/${saleId}`, ADMIN, saleSettings(changes));
  }

  act(saleId: string, action: 'pause' | 'resume' | 'end'): Promise<Answer> {
    return this.#ask('POST', `/admin/sales/${saleId}/${action}`, ADMIN);
  }

  async #ask(method: string, path: string, token: string, payload?: object): Promise<Answer> {
    const headers = { authorization: `Bearer ${token}`, ...(payload ? { 'content-type': 'application/json' } : {}) };
    const reply = await fetch(this.url + path, {
      method,
      headers,
      ...(payload ? { body: JSON.stringify(payload) } : {}),
    });
    const text = await reply.text();
    const body = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> & { code?: string; outcome?: string };
    return { status: reply.status, code: body.code ?? body.outcome ?? '', body };
  }
}

/** Starts that many API processes. @param env the stores, and settings that differ from the tests' usual ones */
export function startSellers(count: number, env: Record<string, string>): Promise<Seller[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const child = fork(join(import.meta.dirname, 'seller.ts'), [], {
        execArgv: [],
        env: { ...runtime, ...settings, ...env },
      });
      running.add(child);
      const ended = once(child, 'exit').then(([code]) => {
        throw new Error(`an API process ended before it listened (exit code ${String(code)})`);
      });
      const [address] = (await Promise.race([once(child, 'message'), ended])) as [string];
      ended.catch(() => undefined); // once it listened, its end is the test's own doing
      return new Seller(address);
    }),
  );
}
