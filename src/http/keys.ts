/**
 * The public keys of whoever issues buyers' tokens, from a JWK set (RFC 7517) at an address. Keys that are known go on
 * while that address is away; an unknown key id is looked for there, at most every five seconds.
 */
import { createRemoteJWKSet, errors, type JWTVerifyGetKey } from 'jose';
import type { Log } from '../operations/stores.ts';

/** The keys cannot be read now, and the token's is not known: neither a yes nor a no. */
export class KeysUnavailable extends Error {}

export type KeysOptions = {
  url: URL;
  /** Longest wait for the set, in milliseconds. */
  timeoutMs: number;
  /** Told after a set was read in the background: what was believed before may rest on a key that was withdrawn. */
  onRefresh: () => void;
  log: Log;
  /** After the set was read, an unknown key is not looked for within this time: made-up ids are no load elsewhere. */
  coolDownMs?: number;
  /** After a failure, for how long nobody asks again. */
  pauseMs?: number;
  /** How old the set may become before it is read again, so that a key that was withdrawn stops being good. */
  refreshMs?: number;
};

/**
 * @returns for jose: the key of a token's header
 * @throws {KeysUnavailable} also for whatever the address answers that is no JWK set
 */
export function remoteKeys(options: KeysOptions): JWTVerifyGetKey {
  const { url, timeoutMs, onRefresh, log, coolDownMs = 5000, pauseMs = 1000, refreshMs = 600_000 } = options;
  // No age at which jose forgets what it has: then nobody would get in while the address is away.
  const set = createRemoteJWKSet(url, {
    timeoutDuration: timeoutMs,
    cooldownDuration: coolDownMs,
    cacheMaxAge: Infinity,
  });
  let askedAt = -Infinity;
  let failedAt = -Infinity;

  const failed = (error: unknown): KeysUnavailable => {
    failedAt = performance.now();
    const why = error instanceof Error ? error.message : String(error);
    return new KeysUnavailable(`the keys at ${url.href} could not be read: ${why}`, { cause: error });
  };
  const refreshIfOld = () => {
    const now = performance.now();
    if (now - askedAt < refreshMs) return;
    const first = set.jwks() === undefined; // whoever asks now reads it
    askedAt = now;
    if (first) return;
    set.reload().then(onRefresh, (error: unknown) => {
      log.warn({ err: failed(error) }, 'the keys of buyers’ tokens could not be read again: the known ones go on');
    });
  };

  return async (header, token) => {
    refreshIfOld();
    const paused = performance.now() - failedAt < pauseMs;
    if (paused && !knows(set.jwks()?.keys, header.kid))
      throw new KeysUnavailable('the keys could not be read just now');
    try {
      return await set(header, token);
    } catch (error) {
      // What the set says about this token, as opposed to not having the set.
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) throw error;
      if (error instanceof errors.JOSENotSupported) throw error;
      throw failed(error);
    }
  };
}

const knows = (keys: { kid?: string }[] | undefined, kid: string | undefined) =>
  keys?.some((key) => kid === undefined || key.kid === kid) === true;
