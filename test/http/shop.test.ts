/** The sample shop's server: off unless asked for, its session, whose presses it takes, and what it never says. */
import type { InjectOptions } from 'fastify';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { eventStreams } from '../../src/meter.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { admin, expectProblem, putSale, SERVICE, settings, testApi, win, type TestApi } from './api.ts';
import { HS256 } from './tokens.ts';

const SHOP = { SHOP_SAMPLE: 'true', SHOP_SESSION_SECRET: 'a-secret-of-the-tests-with-32-bytes-or-more' };
const FROM_PAGE = { 'sec-fetch-site': 'same-origin' };

type View = {
  sale: { unitsLeft: number } | null;
  reservation: { reservationId: string; userId: string; status: string } | null;
  lost: boolean;
  refused: { code: string; retryAfter?: number; mayReturn?: boolean } | null;
};

let stores: Stores;
let api: TestApi;
beforeAll(async () => {
  stores = await freshStores();
  api = await testApi({ ...stores.env, ...SHOP });
});
afterAll(async () => {
  await api.close();
  await stores.drop();
});

/** A browser, as far as cookies go. */
class Visitor {
  cookie: string | undefined;

  async ask(url: string, options: InjectOptions = {}) {
    const headers = { ...(this.cookie !== undefined && { cookie: `shop=${this.cookie}` }), ...options.headers };
    const answer = await api.app.inject({ ...options, url, headers });
    const set = answer.cookies.find(({ name }) => name === 'shop');
    if (set) this.cookie = encodeURIComponent(set.value);
    return answer;
  }

  async press(saleId: string, what: 'buy' | 'pay' | 'cancel'): Promise<View> {
    const answer = await this.ask(`/shop/${saleId}/${what}`, { method: 'POST', headers: FROM_PAGE });
    expect(answer.statusCode, answer.body).toBe(200);
    return answer.json();
  }
}

async function visitor(saleId: string): Promise<Visitor> {
  const somebody = new Visitor();
  expect((await somebody.ask(`/shop/${saleId}`)).statusCode).toBe(200);
  return somebody;
}

test('there is none unless it is asked for', async () => {
  const without = await testApi(stores.env);
  try {
    const saleId = await putSale(without);
    for (const url of [`/shop/${saleId}`, `/shop/${saleId}/view`, '/shop-assets/shop.js']) {
      expectProblem(await without.app.inject(url), 'not_found');
    }
  } finally {
    await without.close();
  }
});

describe('settings that it cannot work with are refused by name', () => {
  const without = (name: string) => ({ ...stores.env, ...settings, ...SHOP, [name]: '' });
  test.each([
    ['no secret for its cookies', () => without('SHOP_SESSION_SECRET'), 'SHOP_SAMPLE needs SHOP_SESSION_SECRET'],
    ['no token for its calls', () => without('SERVICE_TOKEN'), 'SHOP_SAMPLE needs SERVICE_TOKEN'],
    ['buyers with tokens of their own', () => ({ ...stores.env, ...settings, ...SHOP, ...HS256 }), 'AUTH_MODE=jwt'],
    ['a secret that is too short', () => ({ ...without('SHOP_SAMPLE'), SHOP_SESSION_SECRET: 'short' }), '32 bytes'],
  ])('%s', (_what, env, reason) => {
    expect(() => readConfig(env())).toThrow(reason);
  });
});

test('with AUTH_MODE=none it works as well', async () => {
  const open = await testApi({ ...stores.env, ...SHOP, AUTH_MODE: 'none' });
  const before = api;
  try {
    const saleId = await putSale(open);
    api = open;
    const view = await (await visitor(saleId)).press(saleId, 'buy');
    expect(view.reservation?.status).toBe('QUEUED');
  } finally {
    api = before;
    await open.close();
  }
});

describe('the session', () => {
  test('is signed, out of scripts’ reach, and goes nowhere else; over https not without it', async () => {
    const saleId = await putSale(api);
    const { headers } = await api.app.inject(`/shop/${saleId}`);
    expect(headers['set-cookie']).toMatch(/^shop=[^;]+; Max-Age=\d+; Path=\/shop; HttpOnly; SameSite=Lax$/);
    expect(headers['cache-control']).toBe('no-store');
    const behind = await testApi({ ...stores.env, ...SHOP, TRUST_PROXY: '127.0.0.1' });
    try {
      const secure = await behind.app.inject({ url: `/shop/${saleId}`, headers: { 'x-forwarded-proto': 'https' } });
      expect(secure.headers['set-cookie']).toMatch(/; Secure/);
    } finally {
      await behind.close();
    }
  });

  test('finds the hold again, also when the answer that told of it was lost', async () => {
    const saleId = await putSale(api);
    const somebody = await visitor(saleId);
    const { cookie } = somebody;
    const held = await somebody.press(saleId, 'buy');
    expect(held).toMatchObject({ refused: null, reservation: { status: 'QUEUED' } });
    expect((await somebody.ask(`/shop/${saleId}/view`)).json<View>().reservation).toEqual(held.reservation);
    expect((await somebody.ask(`/shop/${saleId}`)).body).toContain(held.reservation?.reservationId);
    somebody.cookie = cookie; // the browser never got the new one
    expect((await somebody.ask(`/shop/${saleId}/view`)).json<View>().reservation).toBeNull();
    expect((await somebody.press(saleId, 'buy')).reservation).toEqual(held.reservation);
  });

  test.each([
    ['none', () => undefined],
    ['one that somebody else signed', (signed: string) => `${signed.slice(0, -6)}AAAAAA`],
    ['one that nobody signed', () => encodeURIComponent(JSON.stringify({ buyer: 'u-1', holds: {} }))],
  ])('%s: nothing is bought, and the page is told', async (_what, change) => {
    const saleId = await putSale(api);
    const somebody = await visitor(saleId);
    somebody.cookie = change(somebody.cookie ?? '');
    expect(await somebody.press(saleId, 'buy')).toMatchObject({ reservation: null, refused: { code: 'no_cookies' } });
    expect((await somebody.ask(`/shop/${saleId}/events`)).statusCode).toBe(204);
  });

  test('two visitors are two buyers, and neither sees the other’s', async () => {
    const saleId = await putSale(api);
    const [one, other] = [await visitor(saleId), await visitor(saleId)];
    const held = await one.press(saleId, 'buy');
    expect((await other.ask(`/shop/${saleId}/view`)).json<View>().reservation).toBeNull();
    const second = await other.press(saleId, 'buy');
    expect(second.reservation?.userId).not.toBe(held.reservation?.userId);
  });
});

test.each([
  ['another site', { 'sec-fetch-site': 'cross-site' }],
  ['another host of the same site', { 'sec-fetch-site': 'same-site' }],
  ['another origin, by an older browser', { origin: 'https://evil.example', host: 'shop.example' }],
  ['no browser', {}],
])('%s cannot press', async (_who, headers) => {
  const saleId = await putSale(api);
  const somebody = await visitor(saleId);
  for (const what of ['buy', 'pay', 'cancel']) {
    expectProblem(await somebody.ask(`/shop/${saleId}/${what}`, { method: 'POST', headers }), 'forbidden');
  }
  expect((await somebody.ask(`/shop/${saleId}/view`)).json<View>()).toMatchObject({ sale: { unitsLeft: 10 } });
});

test('an older browser’s own page can', async () => {
  const saleId = await putSale(api);
  const headers = { origin: 'http://shop.example', host: 'shop.example' };
  const bought = await (await visitor(saleId)).ask(`/shop/${saleId}/buy`, { method: 'POST', headers });
  expect(bought.json<View>().reservation?.status).toBe('QUEUED');
});

test('refusals are told with 200, each by its name', async () => {
  const saleId = await putSale(api, { total: 1 });
  const somebody = await visitor(saleId);
  await win(api, saleId, 'faster');
  const refused = (await somebody.press(saleId, 'buy')).refused;
  expect(refused).toMatchObject({ code: 'sold_out', mayReturn: true });
  expect(refused?.retryAfter).toBeGreaterThan(0);
  await admin(api, 'POST', `/${saleId}/pause`);
  const [fresh] = [await visitor(saleId)];
  await vi.waitFor(async () => expect((await fresh.press(saleId, 'buy')).refused?.code).toBe('paused'));
});

test('given up, and pressed again: another reservation', async () => {
  const saleId = await putSale(api);
  const somebody = await visitor(saleId);
  const first = await somebody.press(saleId, 'buy');
  expect((await somebody.press(saleId, 'cancel')).reservation?.status).toBe('CANCELLED');
  const second = await somebody.press(saleId, 'buy');
  expect(second.reservation?.status).toBe('QUEUED');
  expect(second.reservation?.reservationId).not.toBe(first.reservation?.reservationId);
});

test('where nothing takes payments, paying is refused and the hold stays', async () => {
  const saleId = await putSale(api);
  const somebody = await visitor(saleId);
  await somebody.press(saleId, 'buy');
  expect(await somebody.press(saleId, 'pay')).toMatchObject({
    refused: { code: 'payment_provider_refused' },
    reservation: { status: 'QUEUED' },
  });
});

describe('the page', () => {
  test('has nothing inline, no token, and the sale’s name as text', async () => {
    const saleId = await putSale(api, { name: '<img src=x onerror=alert(1)> & "more"' });
    const { body, headers } = await api.app.inject(`/shop/${saleId}`);
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(headers['content-security-policy']).toMatch(/^default-src 'none';script-src 'self';style-src 'self'/);
    expect(headers['content-security-policy']).not.toMatch(/unsafe|http|\*/);
    expect(body).toContain('<h1>&lt;img src=x onerror=alert(1)&gt; &amp; &quot;more&quot;</h1>');
    expect(body).not.toMatch(/<img src=x|<style|\sstyle=|<script(?![^>]*\ssrc=)/);
    expect(body).not.toContain(SERVICE);
    const files = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path);
    expect(files.length).toBeGreaterThan(5);
    for (const file of files) expect([file, (await api.app.inject(file)).statusCode]).toEqual([file, 200]);
  });

  test.each(['nobody-made-it', 'not%20an%20id', 'x'.repeat(100)])(
    'of no sale (%s) is 404, and a page',
    async (saleId) => {
      const { statusCode, headers, body } = await api.app.inject(`/shop/${saleId}`);
      expect([statusCode, headers['content-type']]).toEqual([404, 'text/html; charset=utf-8']);
      expect(body).toContain('There is no such sale');
      expect(headers['set-cookie']).toBeUndefined();
    },
  );

  test('its files are kept until they change, and are the only ones', async () => {
    const first = await api.app.inject('/shop-assets/shop.css');
    const headers = { 'if-none-match': String(first.headers.etag) };
    expect((await api.app.inject({ url: '/shop-assets/shop.css', headers })).statusCode).toBe(304);
    expect(first.headers['cache-control']).toBe('no-cache');
    const small = await api.app.inject({ url: '/shop-assets/shop.css', headers: { 'accept-encoding': 'gzip, br' } });
    expect(small.headers['content-encoding']).toBe('br');
    expect(small.rawPayload.length).toBeLessThan(first.rawPayload.length / 2);
    for (const path of ['shop.html', 'tsconfig.json', '../shop.ts', '%2e%2e/shop.ts', '..%2fshop.ts', 'none.js', '']) {
      expectProblem(await api.app.inject(`/shop-assets/${path}`), 'not_found');
    }
  });
});

test('the reservation’s stream is handed through, and nobody goes on reading for a page that is gone', async () => {
  const saleId = await putSale(api);
  const somebody = await visitor(saleId);
  const held = await somebody.press(saleId, 'buy');
  const streams = async () => {
    const { values } = await eventStreams.get();
    return values.find(({ labels }) => labels.kind === 'reservation')?.value;
  };
  const gone = new AbortController();
  const answer = await fetch(`${await api.url()}/shop/${saleId}/events`, {
    headers: { cookie: `shop=${somebody.cookie ?? ''}` },
    signal: gone.signal,
  });
  expect(answer.headers.get('content-type')).toBe('text/event-stream');
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  let text = '';
  while (!text.includes('data: ')) text += new TextDecoder().decode((await reader.read()).value);
  expect(text).toContain(held.reservation?.reservationId);
  expect(await streams()).toBe(1);
  gone.abort();
  await vi.waitFor(async () => expect(await streams()).toBe(0), { timeout: 5000 });
});
