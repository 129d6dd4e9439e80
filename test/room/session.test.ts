/** Signing in to the operations room, who may ask for a change, and what whoever is not signed in gets: nothing. */
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIN, expectProblem, putSale, testApi, type TestApi } from '../http/api.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { pathsOf } from '../http/paths.ts';
import { ask, cookieOf, signIn, visit, type Visitor } from './visitor.ts';

const OTHER = 'another-admin-token-of-the-tests';
let stores: Stores;
let api: TestApi;
let saleId: string;
let visitor: Visitor;
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi({ ...stores.env, ADMIN_TOKEN: `${ADMIN} ${OTHER}` });
  saleId = await putSale(api);
  visitor = await visit(api);
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

/** Of all routes of the room that tell or change anything. */
const CLOSED: ['GET' | 'POST' | 'PUT' | 'DELETE', string, object?][] = [
  ['GET', '/ops/session'],
  ['DELETE', '/ops/session'],
  ['GET', '/ops/sales'],
  ['GET', '/ops/journal'],
  ['GET', '/ops/sales/KNOWN/reservations'],
  ['GET', '/ops/sales/KNOWN/audit'],
  ['GET', '/ops/sales/KNOWN/rush'],
  ['GET', '/ops/events?sale=KNOWN'],
  ...['pause', 'resume', 'end', 'close', 'audit'].map((each): ['POST', string] => ['POST', `/ops/sales/KNOWN/${each}`]),
  ['PUT', '/ops/sales/KNOWN/total', { total: 11 }],
];

/** Its pages and files, which anybody may have, and signing in. */
const OPEN = /^\/ops(\/assets\/.*|\/sales\/:saleId)?$/;

test('each route that tells or changes anything is in the list above', async () => {
  const paths = pathsOf(api.app.printRoutes({ commonPrefix: false })).filter((path) => path.startsWith('/ops'));
  const routes: string[] = [];
  for (const path of paths.filter((each) => !OPEN.test(each))) {
    const { headers } = await ask(api, { method: 'PROPFIND', url: path.replace(':saleId', saleId) });
    const methods = String(headers['allow'])
      .split(', ')
      .filter((method) => method !== 'HEAD');
    routes.push(...methods.map((method) => `${method} ${path}`));
  }
  const tried = CLOSED.map(([method, path]) => `${method} ${path.replace('KNOWN', ':saleId').replace(/\?.*/, '')}`);
  expect(routes.sort()).toEqual([...tried, 'POST /ops/session'].sort());
});

describe('whoever is not signed in', () => {
  test.each(CLOSED)('%s %s: 401', async (method, path, payload) => {
    const url = path.replace('KNOWN', saleId);
    expectProblem(await ask(api, { method, url, ...(payload && { payload }) }), 'unauthorized');
    const headers = { authorization: `Bearer ${ADMIN}`, cookie: 'flashgate_ops=nonsense' };
    expectProblem(await ask(api, { method, url, headers, ...(payload && { payload }) }), 'unauthorized');
  });

  test.each(['/ops', '/ops/sales/any'])('gets the page to sign in at %s', async (url) => {
    const page = await ask(api, { method: 'GET', url });
    expect(page.statusCode).toBe(200);
    expect(page.body).toContain('id="sign-in"');
    expect(page.headers).toMatchObject({ 'cache-control': 'no-store' });
    const { cookie } = visitor;
    expect((await ask(api, { method: 'GET', url, headers: { cookie } })).body).toContain('id="sale-view"');
  });
});

describe('signing in', () => {
  test('the token: a cookie that no script reads, for this path, for eight hours; over TLS it stays there', async () => {
    const answer = await signIn(api);
    expect(answer.statusCode).toBe(204);
    expect(answer.headers['set-cookie']).toMatch(
      /^flashgate_ops=[\w.-]+; Max-Age=28800; Path=\/ops; HttpOnly; SameSite=Strict$/,
    );
    const behind = await testApi({ ...stores.env, TRUST_PROXY: '127.0.0.1' });
    const secure = await signIn(behind, ADMIN, { 'x-forwarded-proto': 'https' });
    expect(secure.headers['set-cookie']).toContain('; Secure');
    await behind.close();
  });

  test('a wrong token, none, too much: refused, and no cookie', async () => {
    const wrong = await signIn(api, `${ADMIN}x`);
    expectProblem(wrong, 'unauthorized');
    expect(wrong.headers['set-cookie']).toBeUndefined();
    expectProblem(await signIn(api, ''), 'invalid_request');
    expectProblem(await signIn(api, 'x'.repeat(2000)), 'invalid_request');
  });

  test('from another site’s page: refused', async () => {
    expectProblem(await signIn(api, ADMIN, { 'sec-fetch-site': 'cross-site' }), 'csrf_token_wrong');
    expectProblem(await signIn(api, ADMIN, { origin: 'https://elsewhere.example' }), 'csrf_token_wrong');
  });

  test('again and again: 429 for that address, the good token too', async () => {
    const fresh = await testApi(stores.env);
    for (let n = 0; n < 10; n += 1) expectProblem(await signIn(fresh, 'x'.repeat(20)), 'unauthorized');
    const late = await signIn(fresh);
    expectProblem(late, 'rate_limited');
    expect(Number(late.headers['retry-after'])).toBeGreaterThan(0);
    await fresh.close();
  });

  test('out: the cookie is deleted, by the page alone', async () => {
    expectProblem(await visitor.send('DELETE', '/ops/session', undefined, { 'x-csrf-token': 'x' }), 'csrf_token_wrong');
    const answer = await visitor.send('DELETE', '/ops/session');
    expect(answer.headers['set-cookie']).toMatch(/^flashgate_ops=; Max-Age=0; Path=\/ops; Expires=Thu, 01 Jan 1970/);
  });
});

describe('a session', () => {
  test('is known to another process, and ends with the token that began it', async () => {
    const { cookie } = await visit(api, OTHER);
    const known = { method: 'GET' as const, url: '/ops/session', headers: { cookie } };
    const sibling = await testApi({ ...stores.env, ADMIN_TOKEN: `${OTHER} ${ADMIN}` });
    const rotated = await testApi({ ...stores.env, ADMIN_TOKEN: ADMIN });
    expect((await ask(sibling, known)).statusCode).toBe(200);
    expectProblem(await ask(rotated, known), 'unauthorized');
    await Promise.all([sibling.close(), rotated.close()]);
  });

  test('cannot be made up: unsigned, signed by the token itself, changed, or over', async () => {
    const cookie = cookieOf(await signIn(api));
    const [head = '', claims = '', signature = ''] = cookie.split('=')[1]?.split('.') ?? [];
    const text = JSON.stringify({
      ...(JSON.parse(Buffer.from(claims, 'base64url').toString()) as object),
      csrf: 'mine',
    });
    const made = (payload: object) =>
      new SignJWT({ csrf: 'x', ...payload })
        .setProtectedHeader({ alg: 'HS256' })
        .setIssuer('flashgate')
        .setAudience('flashgate-ops')
        .setJti('x');
    const forged = [
      `${Buffer.from('{"alg":"none"}').toString('base64url')}.${claims}.`,
      `${head}.${Buffer.from(text).toString('base64url')}.${signature}`,
      await made({}).setExpirationTime('1 h').sign(Buffer.from(ADMIN)),
      await made({}).setExpirationTime('1 h').sign(Buffer.alloc(32)),
    ];
    for (const each of forged) {
      const headers = { cookie: `flashgate_ops=${each}` };
      expectProblem(await ask(api, { method: 'GET', url: '/ops/session', headers }), 'unauthorized');
    }
  });
});

describe('a change', () => {
  test.each<[string, Record<string, string>]>([
    ['without the page’s token', { 'x-csrf-token': '' }],
    ['with another token of the same length', { 'x-csrf-token': 'x'.repeat(24) }],
    ['from another site', { 'sec-fetch-site': 'cross-site' }],
    ['from another host of the same site', { 'sec-fetch-site': 'same-site' }],
    ['from another origin, where that is all that is said', { origin: 'http://localhost:81' }],
  ])('%s: 403 by name, and nothing is changed', async (_, headers) => {
    expectProblem(await visitor.send('POST', `/ops/sales/${saleId}/pause`, undefined, headers), 'csrf_token_wrong');
    expect(await visitor.get('/ops/sales')).toMatchObject({ sales: [{ saleId, state: 'open' }] });
  });

  test('from this page: done', async () => {
    const headers = { 'sec-fetch-site': 'same-origin', origin: 'http://localhost:80' };
    expect((await visitor.send('POST', `/ops/sales/${saleId}/pause`, undefined, headers)).json()).toMatchObject({
      state: 'paused',
    });
    await visitor.send('POST', `/ops/sales/${saleId}/resume`);
  });
});

test('OPS_ROOM=false, or no admin token: there is no such place', async () => {
  for (const more of [{ OPS_ROOM: 'false' }, { ADMIN_TOKEN: '' }]) {
    const without = await testApi({ ...stores.env, ...more });
    for (const url of ['/ops', '/ops/session', '/ops/assets/room.js']) {
      expectProblem(await ask(without, { method: 'GET', url }), 'not_found');
    }
    await without.close();
  }
});

test('the pages load nothing from elsewhere and have nothing inline; files are compressed, and kept until they change', async () => {
  const { cookie } = visitor;
  for (const headers of [{}, { cookie }]) {
    const page = await ask(api, { method: 'GET', url: '/ops', headers });
    expect(page.headers['content-security-policy']).toBe(
      "default-src 'none';script-src 'self';style-src 'self';img-src 'self';font-src 'self';connect-src 'self';base-uri 'none';form-action 'none';frame-ancestors 'none'",
    );
    expect(page.body).not.toMatch(
      /<script(?![^>]*\bsrc="\/ops\/assets\/)|\bon\w+="|\bstyle="|<style|javascript:|https?:/,
    );
    const files = [...page.body.matchAll(/(?:src|href)="(\/ops\/assets\/[\w.-]+)"/g)].map(([, url = '']) => url);
    expect(files.length).toBeGreaterThan(2);
    for (const url of files) {
      const plain = await ask(api, { method: 'GET', url });
      expect(plain.statusCode, url).toBe(200);
      for (const encoding of ['br', 'gzip']) {
        const small = await ask(api, { method: 'GET', url, headers: { 'accept-encoding': encoding } });
        expect(small.headers['content-encoding']).toBe(encoding);
        expect(small.rawPayload.length).toBeLessThan(plain.rawPayload.length + 60);
      }
      const unwanted = await ask(api, { method: 'GET', url, headers: { 'accept-encoding': 'br;q=0, identity' } });
      expect(unwanted.headers['content-encoding']).toBeUndefined();
      const etag = String(plain.headers.etag);
      const again = await ask(api, { method: 'GET', url, headers: { 'if-none-match': etag } });
      expect([again.statusCode, again.body]).toEqual([304, '']);
    }
  }
});
