/** Who presses too often is told when to press again; nobody else pays for it, and no hold is lost by it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores, type Stores } from '../support/stores.ts';
import { admin, ask, deliver, eventOf, expectProblem, newId, press, putSale, reservationUrl } from './api.ts';
import { testApi, win, type TestApi, type Won } from './api.ts';
import { bearing, HS256, tokenOf } from './tokens.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await freshStores();
});
afterAll(() => stores.drop());

async function withApi(env: Record<string, string>, work: (api: TestApi) => Promise<void>): Promise<void> {
  const api = await testApi({ ...stores.env, ...env });
  try {
    await work(api);
  } finally {
    await api.close();
  }
}

type Answer = Awaited<ReturnType<typeof press>>;
const times = async (count: number, act: () => Promise<Answer>) => {
  const answers: Answer[] = [];
  for (let n = 0; n < count; n += 1) answers.push(await act());
  return answers;
};
const statuses = (answers: Answer[]) => answers.map(({ statusCode }) => statusCode);

function expectLimited(answer: Answer, limit: number, windowMs: number): void {
  expectProblem(answer, 'rate_limited');
  const {
    'retry-after': after,
    'ratelimit-limit': told,
    'ratelimit-remaining': left,
    'ratelimit-reset': reset,
  } = answer.headers;
  expect([told, left]).toEqual([String(limit), '0']);
  expect(reset).toBe(after);
  expect(Number(after)).toBeGreaterThanOrEqual(1);
  expect(Number(after)).toBeLessThanOrEqual(windowMs / 1000);
}

/** Longer than any test here takes. */
const LONG = { RATE_LIMIT_WINDOW_MS: '600000' };

describe('by buyer', () => {
  test('too many presses are 429; others are not touched; what is no press is not counted', async () => {
    await withApi({ ...LONG, RATE_LIMIT_BUYER: '3' }, async (api) => {
      const saleId = await putSale(api);
      const answers = await times(5, () => press(api, saleId, 'ann'));
      expect(statuses(answers)).toEqual([202, 200, 200, 429, 429]);
      expectLimited(answers[3] as Answer, 3, 600_000);
      const won = await win(api, saleId, 'bob');
      // The storefront's server asks as often as it likes, and so do admins and the payment provider.
      expect(statuses(await times(9, () => ask(api, reservationUrl(won))))).toEqual(Array(9).fill(200));
      expect(statuses(await times(9, () => admin(api, 'GET', '')))).toEqual(Array(9).fill(200));
      const event = eventOf(won, { type: 'nothing.we.know' });
      expect(statuses(await times(9, () => deliver(api, event)))).toEqual(Array(9).fill(200));
      expect(statuses(await times(9, () => ask(api, `/sales/${saleId}`)))).toEqual(Array(9).fill(200));
    });
  });

  test('whoever goes on pressing is let through when the window is over, and finds the hold', async () => {
    await withApi({ RATE_LIMIT_WINDOW_MS: '1000', RATE_LIMIT_BUYER: '2' }, async (api) => {
      const saleId = await putSale(api);
      const won = await win(api, saleId, 'ann');
      let [limited, found] = [0, 0];
      await expect
        .poll(
          async () => {
            const answer = await press(api, saleId, 'ann');
            if (answer.statusCode === 429) limited += 1;
            else if (limited > 0) found += 1;
            if (answer.statusCode === 200) expect(answer.json()).toMatchObject({ reservationId: won.reservationId });
            return limited > 0 && found > 0;
          },
          { timeout: 15_000, interval: 5 },
        )
        .toBe(true);
    });
  });

  test('a refusal that the process knows by itself is not counted: a 429 would only bring its buyer back', async () => {
    await withApi({ ...LONG, RATE_LIMIT_BUYER: '3', LATCH_MS: '60000' }, async (api) => {
      const saleId = await putSale(api, { total: 1 });
      await win(api, saleId, 'winner');
      await expect
        .poll(async () => {
          await press(api, saleId, newId());
          return api.wired.stores.gate.refuses(saleId, 'zoe', 1);
        })
        .toBe(true);
      expect(statuses(await times(20, () => press(api, saleId, 'zoe')))).toEqual(Array(20).fill(409));
    });
  });

  test('0 is no limit', async () => {
    await withApi({ ...LONG, RATE_LIMIT_BUYER: '0' }, async (api) => {
      const saleId = await putSale(api);
      expect(statuses(await times(150, () => press(api, saleId, 'ann'))).filter((code) => code >= 400)).toEqual([]);
    });
  });

  test('fifty at once by one buyer are all answered by default, with the same reservation', async () => {
    await withApi({}, async (api) => {
      const saleId = await putSale(api);
      const answers = await Promise.all(Array.from({ length: 50 }, () => press(api, saleId, 'ann')));
      expect(new Set(answers.map((answer) => answer.json<Won>().reservationId)).size).toBe(1);
    });
  });
});

describe('buyers who come by themselves', () => {
  const PROXY = '10.1.2.3';
  const by = async (api: TestApi, saleId: string, name: string, from: string, forwarded?: string) =>
    api.app.inject({
      method: 'POST',
      url: `/sales/${saleId}/reserve`,
      remoteAddress: from,
      headers: {
        ...bearing(await tokenOf(name)),
        ...(forwarded === undefined ? {} : { 'x-forwarded-for': forwarded, 'x-real-ip': forwarded }),
      },
      payload: {},
    });

  test('are counted by address too; what a stranger says of where it comes from changes nothing', async () => {
    await withApi({ ...HS256, ...LONG, RATE_LIMIT_ADDRESS: '2', TRUST_PROXY: '10.1.0.0/16' }, async (api) => {
      const saleId = await putSale(api, { total: 100 });
      let n = 0;
      const from = (address: string, forwarded?: string) => by(api, saleId, `u-${(n += 1)}`, address, forwarded);
      // A peer that is not trusted, with a new story each time.
      expect((await from('192.0.2.1', '198.51.100.1')).statusCode).toBe(202);
      expect((await from('192.0.2.1', '198.51.100.2')).statusCode).toBe(202);
      expectLimited(await from('192.0.2.1', '198.51.100.3'), 2, 600_000);
      // What the proxy says counts: the last address that is not a proxy's, whatever stands before it.
      for (const story of ['1.1.1.1, 203.0.113.7', '2.2.2.2, 203.0.113.7, 10.1.9.9']) {
        expect((await from(PROXY, story)).statusCode).toBe(202);
      }
      expectLimited(await from(PROXY, '3.3.3.3, 203.0.113.7'), 2, 600_000);
      expect((await from(PROXY, '203.0.113.8')).statusCode).toBe(202);
      // The addresses of one IPv6 network are one.
      for (const end of ['1', '2']) expect((await from(PROXY, `2001:db8:1:2::${end}`)).statusCode).toBe(202);
      expectLimited(await from(PROXY, '2001:db8:1:2:ffff::3'), 2, 600_000);
      expect((await from(PROXY, '2001:db8:1:3::1')).statusCode).toBe(202);
    });
  });

  test('without TRUST_PROXY nobody is believed', async () => {
    await withApi({ ...HS256, ...LONG, RATE_LIMIT_ADDRESS: '1' }, async (api) => {
      const saleId = await putSale(api, { total: 100 });
      expect((await by(api, saleId, 'a', PROXY, '198.51.100.1')).statusCode).toBe(202);
      expectLimited(await by(api, saleId, 'b', PROXY, '198.51.100.2'), 1, 600_000);
    });
  });

  test('asking for a reservation is counted apart from pressing', async () => {
    await withApi({ ...HS256, ...LONG, RATE_LIMIT_BUYER: '2' }, async (api) => {
      const saleId = await putSale(api);
      const headers = bearing(await tokenOf('ann'));
      const won = (await by(api, saleId, 'ann', PROXY)).json<Won>();
      const look = () => api.app.inject({ url: `/sales/${saleId}/reservations/${won.reservationId}`, headers });
      const answers = await times(3, look);
      expect(statuses(answers)).toEqual([200, 200, 429]);
      expectLimited(answers[2] as Answer, 2, 600_000);
      expect((await by(api, saleId, 'ann', PROXY)).statusCode).toBe(200);
    });
  });
});
