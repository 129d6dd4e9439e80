/** What both stores' readers share: a time limit on every answer, and reasons in words. */

/** A store that is out of reach, too slow, or holds something that cannot be read: nothing can be judged from it. */
export class StoreAway extends Error {}

/**
 * Waits for an answer, but not longer than the limit.
 * @throws {StoreAway} when the answer is an error or late; `store` says whose answer it was
 */
export async function within<T>(limitMs: number, store: string, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new StoreAway(`${store} did not answer within ${limitMs} ms`));
    }, limitMs);
  });
  try {
    return await Promise.race([answer, late]);
  } catch (error) {
    if (error instanceof StoreAway) throw error;
    throw new StoreAway(`${store}: ${reasonOf(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/** An error's message. A connection refused at several addresses has none of its own, but a code. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || (error as NodeJS.ErrnoException).code || error.name;
}

/** Host and port of a store's address, without its password. */
export function placeOf(url: string): string {
  if (!URL.canParse(url)) return 'an address that is no URL';
  return new URL(url).host || 'the local host';
}
