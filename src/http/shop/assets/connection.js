/**
 * How the page hears of changes: by event streams while they work, by asking every few seconds while they do not. A page
 * that nobody looks at closes its streams, since a browser has few connections per host for all its tabs.
 */

const POLL_MS = 3000;
/** A stream that the server ended is asked for again after this. */
const STREAM_AGAIN_MS = 15_000;
const PATIENCE_MS = 10_000;

/** With jitter, so that those who were cut off together do not come back together. @param {number} ms */
export const about = (ms) => ms * (0.8 + Math.random() * 0.4);

/**
 * A stream of server-sent events that is kept open. Between `onBreak` and `onOpen` it is of no use.
 * @param {string} url
 * @param {string} event its name
 * @param {{ onData: (data: unknown) => void, onOpen: () => void, onBreak: () => void }} then
 * @returns {() => void} closes it for good
 */
export function listen(url, event, { onData, onOpen, onBreak }) {
  /** @type {EventSource} */
  let source;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const open = () => {
    source = new EventSource(url);
    source.addEventListener('open', onOpen);
    source.addEventListener(event, ({ data }) => onData(JSON.parse(data)));
    source.addEventListener('error', () => {
      onBreak();
      // Otherwise the browser tries again by itself.
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, about(STREAM_AGAIN_MS));
    });
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}

/**
 * Calls `work` every few seconds, but never twice at once, until it is stopped.
 * @param {() => Promise<void>} work
 * @returns {() => void}
 */
export function poll(work) {
  /** @type {ReturnType<typeof setTimeout>} */
  let timer;
  let stopped = false;
  const next = () => {
    timer = setTimeout(async () => {
      await work();
      if (!stopped) next();
    }, about(POLL_MS));
  };
  next();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

/**
 * @param {'GET' | 'POST'} method
 * @param {string} url
 * @returns {Promise<import('./screens.js').View | undefined>} undefined when there was no answer that says anything
 */
export async function ask(method, url) {
  try {
    const answer = await fetch(url, { method, signal: AbortSignal.timeout(PATIENCE_MS) });
    return answer.ok ? await answer.json() : undefined;
  } catch {
    return undefined; // no connection, or no answer in time: the caller shows it
  }
}
