/**
 * The buyer's own token: a signed JWT (RFC 7519) as a Bearer (RFC 6750), checked by jose. What decides is the
 * configuration: the one algorithm, the keys, audience and issuer; nothing of it is taken from the token. A token that
 * was found good is remembered until it expires, so that the next press costs no signature check.
 */
import { errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions } from 'jose';
import { UserId } from '../domain/reservation.ts';
import { Problem } from './problem.ts';
import { Recent } from './recent.ts';

export type TokenRules = {
  algorithm: string;
  audience: string;
  issuer: string;
  /** Shared secrets of which one has signed, for HS256; or where the signer's public key comes from. */
  keys: Uint8Array[] | JWTVerifyGetKey;
};

/** Clocks of issuer and API may differ by this much, in seconds. */
const CLOCK_TOLERANCE_S = 5;
/** Tokens that are remembered: a rush of 20,000 buyers fits; at about a kilobyte each. */
const REMEMBERED = 20_000;

type Verified = { buyer: string; /** Epoch milliseconds. */ until: number };

export class BuyerTokens {
  #rules: TokenRules;
  #known = new Recent<Verified>(REMEMBERED);

  constructor(rules: TokenRules) {
    this.#rules = rules;
  }

  /** @param authorization the header, whole. @returns the buyer, if this very header was found good before */
  remembered(authorization: string): string | undefined {
    const verified = this.#known.get(authorization);
    if (verified === undefined) return undefined;
    if (Date.now() < verified.until) return verified.buyer;
    this.#known.delete(authorization);
    return undefined;
  }

  /**
   * @param authorization the header, whole
   * @returns the buyer: the token's subject
   * @throws {Problem} `unauthorized`, with the reason
   * @throws {KeysUnavailable} when the key that it names cannot be had now
   */
  async verify(authorization: string): Promise<string> {
    const [, token] = /^Bearer +(\S+)$/i.exec(authorization) ?? [];
    if (token === undefined) throw new Problem('unauthorized');
    const { sub, exp = 0 } = await this.#payload(token);
    const buyer = UserId.safeParse(sub);
    if (!buyer.success) throw invalidToken('its subject is not 1 to 128 visible ASCII characters');
    this.#known.set(authorization, { buyer: buyer.data, until: (exp + CLOCK_TOLERANCE_S) * 1000 });
    return buyer.data;
  }

  /** For when keys may have been withdrawn. */
  forget(): void {
    this.#known.clear();
  }

  async #payload(token: string): Promise<JWTPayload> {
    const { algorithm, audience, issuer, keys } = this.#rules;
    const options: JWTVerifyOptions = {
      algorithms: [algorithm],
      audience,
      issuer,
      clockTolerance: CLOCK_TOLERANCE_S,
      requiredClaims: ['exp', 'sub'],
    };
    try {
      if (typeof keys === 'function') return (await jwtVerify(token, keys, options)).payload;
      return await withAnyOf(keys, async (key) => (await jwtVerify(token, key, options)).payload);
    } catch (error) {
      if (error instanceof errors.JOSEError) throw invalidToken(reasonOf(error, algorithm));
      throw error;
    }
  }
}

/** The first key under which the signature fits. @throws {errors.JOSEError} the last key's, when none does */
async function withAnyOf<T>(keys: Uint8Array[], verify: (key: Uint8Array) => Promise<T>): Promise<T> {
  let failure: unknown = new errors.JWSSignatureVerificationFailed();
  for (const key of keys) {
    try {
      return await verify(key);
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
      failure = error;
    }
  }
  throw failure;
}

/** Words of our own: nothing of the token is repeated into a header. */
function reasonOf(error: errors.JOSEError, algorithm: string): string {
  if (error instanceof errors.JWTExpired) return 'it has expired';
  if (error instanceof errors.JWTClaimValidationFailed) return `its claim ${error.claim} is missing or not right`;
  if (error instanceof errors.JOSEAlgNotAllowed) return `it is not signed with ${algorithm}`;
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'its signature does not fit';
  if (error instanceof errors.JWKSNoMatchingKey) return 'nobody knows the key that it names';
  if (error instanceof errors.JWKSMultipleMatchingKeys) return 'it does not name its key, and there are several';
  return 'it is not a signed token that can be read';
}

/** RFC 6750, section 3. */
function invalidToken(reason: string): Problem {
  const challenge = `Bearer realm="flashgate", error="invalid_token", error_description="${reason}"`;
  return new Problem('unauthorized', `the token is not good: ${reason}`, {}, { 'www-authenticate': challenge });
}
