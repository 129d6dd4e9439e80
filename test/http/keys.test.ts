/** The issuer's keys: read once, read again when a key is new or old, and what is known goes on while nobody answers. */
import { jwtVerify } from 'jose';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BuyerTokens } from '../../src/http/jwt.ts';
import { KeysUnavailable, remoteKeys, type KeysOptions } from '../../src/http/keys.ts';
import {
  AUDIENCE,
  bytes,
  ISSUER,
  issuer,
  JWT_SECRET,
  secondsFromNow,
  tokenOf,
  type Issuer,
  type Key,
} from './tokens.ts';

const ignore = () => undefined;
let warned: string[];
const log: KeysOptions['log'] = {
  ...{ debug: ignore, info: ignore, error: ignore, fatal: ignore },
  warn: (_fields, message) => void warned.push(message),
};

let host: Issuer;
let key: Key;
beforeEach(async () => {
  warned = [];
  host = await issuer('ES256');
  key = await host.publish('k1');
});
afterEach(() => host.close());

function checker(changes: Partial<KeysOptions> = {}) {
  const keys = remoteKeys({ url: new URL(host.url), timeoutMs: 2000, onRefresh: ignore, log, ...changes });
  return async (kid: string, signer = key) =>
    (await jwtVerify(await tokenOf('u', { alg: 'ES256', key: signer, kid }), keys)).payload.sub;
}

test('the set is read once, by however many ask at once', async () => {
  const check = checker();
  await Promise.all(Array.from({ length: 20 }, () => check('k1')));
  expect(await check('k1')).toBe('u');
  expect(host.asked()).toBe(1);
});

test('a new key is found; made-up ones do not make this ask again and again', async () => {
  const check = checker({ coolDownMs: 0 });
  await check('k1');
  const second = await host.publish('k2');
  expect(await check('k2', second)).toBe('u');
  expect(host.asked()).toBe(2);
  const cool = checker({ coolDownMs: 60_000 });
  await cool('k1');
  const before = host.asked();
  for (const kid of ['x', 'y', 'z']) await expect(cool(kid)).rejects.toThrow('no applicable key');
  expect(host.asked()).toBe(before);
});

test.each<[string, Parameters<Issuer['answer']>[0]]>([
  ['an error', { status: 500, body: '' }],
  ['a page', { status: 200, body: '<html>' }],
  ['JSON that is no set', { status: 200, body: '{"keys":7}' }],
  ['nothing', 'silence'],
])(
  'a host that answers with %s: known keys go on, others are neither good nor bad; it is left alone for a while',
  async (_, answer) => {
    const check = checker({ coolDownMs: 0, pauseMs: 60_000, timeoutMs: 300 });
    await check('k1');
    const second = await host.publish('k2');
    host.answer(answer);
    const before = host.asked();
    for (const _ of [1, 2, 3]) await expect(check('k2', second)).rejects.toBeInstanceOf(KeysUnavailable);
    expect(host.asked()).toBe(before + 1);
    expect(await check('k1')).toBe('u');
  },
);

test('a key that was withdrawn stops being good once the set is read again, for remembered tokens too', async () => {
  const rules = { algorithm: 'ES256', audience: AUDIENCE, issuer: ISSUER };
  const keys = remoteKeys({
    ...{ url: new URL(host.url), timeoutMs: 2000, log, refreshMs: 50, coolDownMs: 0 },
    onRefresh: () => tokens.forget(),
  });
  const tokens = new BuyerTokens({ ...rules, keys });
  const header = `Bearer ${await tokenOf('u', { alg: 'ES256', key, kid: 'k1' })}`;
  await tokens.verify(header);
  expect(tokens.remembered(header)).toBe('u');
  const next = await host.publish('k2', true);
  const other = `Bearer ${await tokenOf('v', { alg: 'ES256', key: next, kid: 'k2' })}`;
  await expect
    .poll(
      async () => {
        await tokens.verify(other);
        return tokens.remembered(header);
      },
      { timeout: 10_000 },
    )
    .toBeUndefined();
  await expect(tokens.verify(header)).rejects.toMatchObject({ code: 'unauthorized' });
});

test('a refresh that fails is logged, and the known keys go on', async () => {
  const check = checker({ refreshMs: 1 });
  await check('k1');
  host.answer({ status: 503, body: '' });
  await expect.poll(() => check('k1').then(() => warned.length), { timeout: 10_000 }).toBeGreaterThan(0);
  expect(await check('k1')).toBe('u');
});

test('a token that was found good costs no second check, until it expires', async () => {
  let checks = 0;
  const secret = (): Promise<Uint8Array> => {
    checks += 1;
    return Promise.resolve(bytes(JWT_SECRET));
  };
  const tokens = new BuyerTokens({ algorithm: 'HS256', audience: AUDIENCE, issuer: ISSUER, keys: secret });
  const header = `Bearer ${await tokenOf('u')}`;
  expect(tokens.remembered(header)).toBeUndefined();
  expect(await tokens.verify(header)).toBe('u');
  for (const _ of [1, 2, 3]) expect(tokens.remembered(header)).toBe('u');
  expect(checks).toBe(1);
  const ending = `Bearer ${await tokenOf('v', { claims: { exp: secondsFromNow(-4) } })}`;
  expect(await tokens.verify(ending)).toBe('v'); // within the tolerance, for another second or so
  await expect.poll(() => tokens.remembered(ending), { timeout: 10_000 }).toBeUndefined();
});
