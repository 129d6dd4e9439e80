/**
 * How late this process is: by how much the last of a row of ticks was overdue. Not by `@fastify/under-pressure`, whose
 * mean is infinite as soon as a turn of the event loop takes longer than its sample, whatever the limit: in a rush over
 * 10,000 connections that shed most of the crowd, where the worst wait was two seconds.
 */
const EVERY_MS = 100;

/** @returns a function that tells the delay in milliseconds; and one that ends the ticks */
export function watchLateness(): { lateMs: () => number; stop: () => void } {
  let due = performance.now() + EVERY_MS;
  let lateMs = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    lateMs = Math.max(0, now - due);
    due = now + EVERY_MS;
  }, EVERY_MS).unref();
  return { lateMs: () => lateMs, stop: () => clearInterval(timer) };
}
