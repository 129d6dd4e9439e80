/**
 * What a process remembers for a tenth of a second after the database said "sold out". A returned unit is sold that
 * much later, and a buyer who holds may be told "sold out" meanwhile: their own process does not know who they are.
 */
const REMEMBERED_MS = 100;
const until = new Map<string, number>();

export const remembersSoldOut = (saleId: string): boolean => performance.now() < (until.get(saleId) ?? 0);

/** @param askedAt by `performance.now()`: counted from the question, not from the answer */
export function rememberSoldOut(saleId: string, askedAt: number): void {
  until.set(saleId, askedAt + REMEMBERED_MS);
}
