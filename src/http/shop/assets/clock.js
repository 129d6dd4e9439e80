/**
 * The server's clock on this device. What the device's own clock says does not matter, nor does setting it: only how much
 * time passes is measured here.
 */

export class ServerClock {
  /** The server's epoch minus `performance.now()`, in milliseconds. */
  #offset = -Infinity;

  /**
   * A time that the server told. On its way, and in a memory, it only gets older: so the latest one is the nearest.
   * @param {string | null | undefined} time RFC 3339
   */
  told(time) {
    if (time) this.#offset = Math.max(this.#offset, Date.parse(time) - performance.now());
  }

  /** Epoch milliseconds. Before the server told any time, the device's. */
  now() {
    return this.#offset === -Infinity ? Date.now() : performance.now() + this.#offset;
  }
}

/**
 * What is left, never more than there is: 9:58, 1:02:03, 2 days 01:02:03.
 * @param {number} ms
 */
export function countdown(ms) {
  const all = Math.max(0, Math.floor(ms / 1000));
  const two = (/** @type {number} */ number) => String(number).padStart(2, '0');
  const [days, hours, minutes, seconds] = [
    Math.floor(all / 86_400),
    Math.floor(all / 3600) % 24,
    Math.floor(all / 60) % 60,
    all % 60,
  ];
  if (days > 0) return `${days} ${days === 1 ? 'day' : 'days'} ${two(hours)}:${two(minutes)}:${two(seconds)}`;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}
