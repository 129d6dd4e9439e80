/** Waiting for Redis, but not longer than a time limit. */
import { storeFailures } from '../meter.ts';

/** Redis is away, slow, full, demoted or damaged: nothing is known of what was asked. */
export class GateUnavailable extends Error {}

/** @throws {GateUnavailable} when there is no answer in time, or an error */
export async function within<T>(timeoutMs: number, what: string, reply: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new GateUnavailable(`${what}: no answer from Redis within ${Math.round(timeoutMs)} ms`));
    }, timeoutMs);
  });
  try {
    return await Promise.race([reply, late]);
  } catch (error) {
    storeFailures.inc({ store: 'redis' });
    if (error instanceof GateUnavailable) throw error;
    throw new GateUnavailable(`${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
