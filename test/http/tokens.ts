/** Buyers' own tokens for tests, signed by jose, and a host that serves a JWK set. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, type JWK, type JWTPayload } from 'jose';

export const JWT_SECRET = 'a-secret-of-the-issuer-of-32-bytes-or-more';
export const AUDIENCE = 'flashgate-tests';
export const ISSUER = 'https://accounts.example';

export const HS256 = {
  AUTH_MODE: 'jwt',
  JWT_ALGORITHM: 'HS256',
  JWT_SECRET,
  JWT_AUDIENCE: AUDIENCE,
  JWT_ISSUER: ISSUER,
  SERVICE_TOKEN: '',
};

export type Key = Parameters<SignJWT['sign']>[0];
export const bytes = (text: string) => new TextEncoder().encode(text);
const now = () => Math.floor(Date.now() / 1000);

type Changes = { claims?: JWTPayload; alg?: string; key?: Key; kid?: string };

/** A good token of this buyer, but for the changes; a claim of undefined is left out. */
export async function tokenOf(sub: unknown, { claims, alg = 'HS256', key, kid }: Changes = {}): Promise<string> {
  const usual = { sub: sub as string, aud: AUDIENCE, iss: ISSUER, iat: now(), exp: now() + 600 };
  const payload = Object.fromEntries(
    Object.entries<unknown>({ ...usual, ...claims }).filter(([, value]) => value !== undefined),
  );
  const header = { alg, ...(kid === undefined ? {} : { kid }) };
  return new SignJWT(payload).setProtectedHeader(header).sign(key ?? bytes(JWT_SECRET));
}

export const bearing = (token: string) => ({ authorization: `Bearer ${token}` });
export const secondsFromNow = (seconds: number) => now() + seconds;

export type Issuer = {
  url: string;
  /** Requests so far. */
  asked: () => number;
  /** Makes a key and publishes it beside (or instead of) the others. */
  publish: (kid: string, instead?: boolean) => Promise<Key>;
  /** The set. */
  keys: () => JWK[];
  /** What to answer instead of the set; undefined: the set. */
  answer: (instead: { status: number; body: string } | 'silence' | undefined) => void;
  close: () => Promise<void>;
};

export async function issuer(alg: string): Promise<Issuer> {
  let keys: JWK[] = [];
  let asked = 0;
  let instead: { status: number; body: string } | 'silence' | undefined;
  const server = createServer((_request, response) => {
    asked += 1;
    if (instead === 'silence') return;
    response.writeHead(instead?.status ?? 200, { 'content-type': 'application/json', connection: 'close' });
    response.end(instead?.body ?? JSON.stringify({ keys }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/jwks.json`,
    asked: () => asked,
    keys: () => keys,
    publish: async (kid, alone = false) => {
      const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
      keys = [...(alone ? [] : keys), { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' }];
      return privateKey;
    },
    answer: (other) => (instead = other),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
