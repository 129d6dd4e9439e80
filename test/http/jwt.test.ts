/** AUTH_MODE=jwt: the buyer's own token says who the buyer is, and the configuration alone says what a good token is. */
import { exportSPKI, importJWK, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores, type Stores } from '../support/stores.ts';
import { admin, asShop, expectProblem, gateState, putSale, testApi, type TestApi, type Won } from './api.ts';
import { AUDIENCE, bearing, bytes, HS256, ISSUER, issuer, secondsFromNow, tokenOf, type Issuer } from './tokens.ts';

let stores: Stores;
let api: TestApi;
let saleId: string;
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi({ ...stores.env, ...HS256, JWT_SECRET: `${HS256.JWT_SECRET} ${'the-next-secret'.repeat(3)}` });
  saleId = await putSale(api, { total: 1000 });
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

const pressWith = ({ app }: TestApi, headers: Record<string, string>, payload: object = {}, sale = saleId) =>
  app.inject({ method: 'POST', url: `/sales/${sale}/reserve`, headers, payload });
const reservation = (won: Won, query = '') => `/sales/${won.saleId}/reservations/${won.reservationId}${query}`;

/** 401, the reason told in the header and in the document, and nothing changed at the gate. */
async function expectInvalid(token: string, reason: RegExp): Promise<void> {
  const before = await gateState(api, saleId);
  const response = await pressWith(api, bearing(token));
  const { detail } = expectProblem(response, 'unauthorized');
  expect(detail).toMatch(reason);
  const challenge = String(response.headers['www-authenticate']);
  expect(challenge).toMatch(/^Bearer realm="flashgate", error="invalid_token", error_description="[^"\\]+"$/);
  expect(challenge).toMatch(reason);
  expect(await gateState(api, saleId)).toEqual(before);
}

describe('the buyer is the subject', () => {
  test('without a userId in the body, or with the same one', async () => {
    const headers = bearing(await tokenOf('ann'));
    const first = await pressWith(api, headers);
    expect(first.statusCode, first.body).toBe(202);
    expect(first.json()).toMatchObject({ outcome: 'ok', userId: 'ann' });
    const second = await pressWith(api, headers, { userId: 'ann', qty: 2 });
    expect(second.statusCode).toBe(200);
    expect(second.json()).toMatchObject({ outcome: 'dup', userId: 'ann', qty: 1 });
    // The Location can be asked for as it stands.
    const { location } = first.headers;
    expect(location).toBe(reservation(first.json<Won>()));
    expect((await api.app.inject({ url: String(location), headers })).json()).toMatchObject({ userId: 'ann' });
  });

  test('another buyer’s name is refused before the gate, on every route', async () => {
    const headers = bearing(await tokenOf('bob'));
    const before = await gateState(api, saleId);
    expectProblem(await pressWith(api, headers, { userId: 'ann' }), 'forbidden');
    expect(await gateState(api, saleId)).toEqual(before);
    const won = (await pressWith(api, headers)).json<Won>();
    for (const method of ['GET', 'DELETE'] as const) {
      const url = reservation(won, '?userId=ann');
      expectProblem(await api.app.inject({ method, url, headers }), 'forbidden');
    }
  });

  test('a reservation is shown to its buyer and given up by its buyer; to another it is not there', async () => {
    const [own, other] = [bearing(await tokenOf('carl')), bearing(await tokenOf('dora'))];
    const won = (await pressWith(api, own)).json<Won>();
    for (const method of ['GET', 'DELETE'] as const) {
      const response = await api.app.inject({ method, url: reservation(won), headers: other });
      expectProblem(response, 'reservation_not_found');
    }
    for (const query of ['', '?userId=carl']) {
      const response = await api.app.inject({ url: reservation(won, query), headers: own });
      expect(response.json()).toMatchObject({ userId: 'carl', status: 'QUEUED' });
    }
    const given = await api.app.inject({ method: 'DELETE', url: reservation(won), headers: own });
    expect(given.statusCode, given.body).toBe(204);
  });

  test.each<[string, unknown]>([
    ['with a space', 'a b'],
    ['empty', ''],
    ['too long', 'u'.repeat(129)],
    ['outside of ASCII', 'jürgen'],
    ['a number', 7],
    ['with a line break', 'a\r\nx: y'],
  ])('a subject that is no userId (%s): 401', async (_, sub) => {
    await expectInvalid(await tokenOf(sub), /its (subject|claim sub) is/);
  });
});

describe('tokens that are not good', () => {
  test.each<[string, Record<string, unknown>, RegExp]>([
    ['expired', { exp: secondsFromNow(-60) }, /expired/],
    ['without an expiry', { exp: undefined }, /exp is missing/],
    ['not good yet', { nbf: secondsFromNow(600) }, /nbf/],
    ['for another audience', { aud: 'something-else' }, /aud/],
    ['without an audience', { aud: undefined }, /aud/],
    ['of another issuer', { iss: 'https://evil.example' }, /iss/],
    ['without a subject', { sub: undefined }, /sub/],
  ])('%s', async (_, claims, reason) => {
    await expectInvalid(await tokenOf('mallory', { claims }), reason);
  });

  test('clocks may differ a little', async () => {
    const late = await tokenOf('late', { claims: { exp: secondsFromNow(-2) } });
    expect((await pressWith(api, bearing(late))).statusCode).toBe(202);
    const early = await tokenOf('early', { claims: { nbf: secondsFromNow(3) } });
    expect((await pressWith(api, bearing(early))).statusCode).toBe(202);
  });

  test('signed by nobody, by another secret, by another algorithm, or changed afterwards', async () => {
    const claims = { sub: 'mallory', aud: AUDIENCE, iss: ISSUER, exp: secondsFromNow(600) };
    await expectInvalid(new UnsecuredJWT(claims).encode(), /not a signed token|not signed with HS256/);
    await expectInvalid(await tokenOf('mallory', { key: bytes('x'.repeat(32)) }), /signature/);
    await expectInvalid(
      await tokenOf('mallory', { alg: 'HS512', key: bytes('x'.repeat(64)) }),
      /not signed with HS256/,
    );
    const [header = '', , signature = ''] = (await tokenOf('ann')).split('.');
    const payload = Buffer.from(JSON.stringify(claims)).toString('base64url');
    await expectInvalid(`${header}.${payload}.${signature}`, /signature/);
    await expectInvalid('a.b.c', /not a signed token/);
    await expectInvalid('x', /not a signed token/);
  });

  test('none at all, or two: asked for one, without an error (RFC 6750, section 3.1)', async () => {
    for (const headers of [{}, { authorization: 'Bearer' }, { authorization: 'Bearer a b' }, { authorization: 'a' }]) {
      const response = await pressWith(api, headers);
      expectProblem(response, 'unauthorized');
      expect(response.headers['www-authenticate']).toBe('Bearer realm="flashgate"');
    }
  });

  test('each secret of the list is good, so that it can be rotated', async () => {
    const token = await tokenOf('rotated', { key: bytes('the-next-secret'.repeat(3)) });
    expect((await pressWith(api, bearing(token))).statusCode).toBe(202);
  });

  test('a storefront’s token opens nothing here, and a buyer’s opens no admin route', async () => {
    expectProblem(await pressWith(api, asShop, { userId: 'u' }), 'unauthorized');
    const headers = bearing(await tokenOf('ann', { claims: { admin: true } }));
    expectProblem(await api.app.inject({ url: '/admin/sales', headers }), 'unauthorized');
    expect((await admin(api, 'GET', '')).statusCode).toBe(200);
  });
});

describe('with the issuer’s public keys', () => {
  let host: Issuer;
  let behind: TestApi;
  let sale: string;
  beforeAll(async () => {
    host = await issuer('RS256');
    const env = { ...stores.env, ...HS256, JWT_SECRET: '', JWT_ALGORITHM: 'RS256', JWT_JWKS_URL: host.url };
    behind = await testApi({ ...env, REQUEST_DEADLINE_MS: '4500' });
    sale = await putSale(behind, { total: 100 });
  });
  afterAll(async () => {
    await behind.close();
    await host.close();
  });

  test('while they cannot be had: 503 by name; then the token is good, and its key goes on when the host is away', async () => {
    const key = await host.publish('k1');
    const token = (name: string, kid = 'k1') => tokenOf(name, { alg: 'RS256', key, kid });
    host.answer({ status: 500, body: 'no' });
    expectProblem(await pressWith(behind, bearing(await token('eve')), {}, sale), 'keys_unavailable');
    expect(behind.log.at(-1)).toMatchObject({ msg: 'keys_unavailable' });
    host.answer(undefined);
    await expect
      .poll(async () => (await pressWith(behind, bearing(await token('eve')), {}, sale)).statusCode, {
        timeout: 10_000,
      })
      .toBe(202);
    await host.close();
    expect((await pressWith(behind, bearing(await token('fay')), {}, sale)).statusCode).toBe(202);
  });

  test('a public key is no secret: HS256 signed with it is refused', async () => {
    const [published = {}] = host.keys();
    const pem = await exportSPKI(
      (await importJWK(published, 'RS256', { extractable: true })) as Parameters<typeof exportSPKI>[0],
    );
    for (const secret of [pem, pem.trim(), JSON.stringify(published), published.n ?? '']) {
      const token = await tokenOf('eve', { key: bytes(secret), kid: 'k1' });
      const response = await pressWith(behind, bearing(token), {}, sale);
      expect(expectProblem(response, 'unauthorized')['detail']).toMatch(/not signed with RS256/);
    }
  });
});
