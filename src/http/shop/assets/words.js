/** Money and times as the page writes them: times of day are the device's, since that is the clock on the buyer's wall. */

/**
 * @param {{ amount: number, currency: string }} price amount in minor units
 */
export function money({ amount, currency }) {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format(amount / 10 ** digits);
}

/**
 * 12:07; with the day when that is not today; with seconds where minutes would be too coarse.
 * @param {number} at epoch milliseconds
 * @param {number} now
 */
export function timeOfDay(at, now) {
  const seconds = Math.abs(at - now) < 90_000;
  const time = new Intl.DateTimeFormat('en-GB', { timeStyle: seconds ? 'medium' : 'short' }).format(at);
  const day = (/** @type {number} */ ms) => new Date(ms).toDateString();
  if (day(at) === day(now)) return time;
  return `${time} on ${new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long' }).format(at)}`;
}

/**
 * one, 2, 3, …
 * @param {number} qty
 */
export const units = (qty) => (qty === 1 ? 'one' : String(qty));
