/** Waiting for a condition, never for a time. */
import { setTimeout as sleep } from 'node:timers/promises';

const LIMIT_MS = 15_000;

/** Resolves once `holds` says so. An error counts as no, and is told if it stays the last word. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  let last: unknown = 'it answered no';
  for (const end = performance.now() + LIMIT_MS; performance.now() < end;) {
    try {
      if (await holds()) return;
      last = 'it answered no';
    } catch (error) {
      last = error;
    }
    await sleep(20);
  }
  throw new Error(`waited ${LIMIT_MS} ms until ${what}: ${String(last)}`);
}
