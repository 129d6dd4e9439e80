/** Somebody signed in to the operations room, without a browser: the cookie, and the token that changes need. */
import type { InjectOptions } from 'fastify';
import { expect } from 'vitest';
import { ADMIN, type TestApi } from '../http/api.ts';

export type Visitor = {
  cookie: string;
  csrf: string;
  get: (path: string) => Promise<ReturnType<typeof JSON.parse>>;
  /** A change, as the page asks for it. */
  send: (
    method: 'POST' | 'PUT' | 'DELETE',
    path: string,
    payload?: object,
    headers?: Record<string, string>,
  ) => ReturnType<typeof ask>;
};

export const ask = ({ app }: TestApi, options: InjectOptions) => app.inject(options);

export const signIn = (api: TestApi, token = ADMIN, headers: Record<string, string> = {}) =>
  ask(api, { method: 'POST', url: '/ops/session', payload: { token }, headers });

export const cookieOf = (answer: Awaited<ReturnType<typeof ask>>) => {
  const [first] = [answer.headers['set-cookie']].flat();
  return first?.split(';')[0] ?? '';
};

export async function visit(api: TestApi, token = ADMIN): Promise<Visitor> {
  const answer = await signIn(api, token);
  expect(answer.statusCode, answer.body).toBe(204);
  const cookie = cookieOf(answer);
  const get = async (path: string): Promise<unknown> => {
    const found = await ask(api, { method: 'GET', url: path, headers: { cookie } });
    expect(found.statusCode, found.body).toBe(200);
    return found.json();
  };
  const { csrf } = (await get('/ops/session')) as { csrf: string };
  return {
    ...{ cookie, csrf, get },
    send: (method, path, payload, headers = {}) =>
      ask(api, {
        method,
        url: path,
        headers: { cookie, 'x-csrf-token': csrf, ...headers },
        ...(payload && { payload }),
      }),
  };
}
