/**
 * Server-sent events (WHATWG HTML, "Server-sent events"): answers that stay open. Here is what holds for every stream of
 * a process: its headers, one timer for all heartbeats, how many there may be, and who is cut off. What is told, and to
 * whom at once, is a matter of fan-out.ts.
 */
import type { OutgoingHttpHeaders } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import { eventStreams } from '../meter.ts';
import { Problem } from './problem.ts';

export const EVENT_STREAM = 'text/event-stream';

const HEADERS = {
  'content-type': EVENT_STREAM,
  'cache-control': 'no-store',
  'x-accel-buffering': 'no', // nginx would gather events until they fill a buffer
};
const HEARTBEAT = Buffer.from(':\n\n'); // a comment, which a reader passes over
/** What may wait for a listener, in bytes. Whoever has not read that much does not read. */
const MOST_UNREAD = 64 * 1024;
/** Told to each listener: when to come back. At random, so that those whose process ends do not come back together. */
const RETRY_MS = { least: 1000, spread: 4000 };
/** Written to in one turn of the event loop; a press waits for no more than that. */
const SLICE = 128;

/** An event as bytes. @param data one line, such as JSON */
export function eventBytes({ event, id, data }: { event: string; id?: string; data: string }): Buffer {
  return Buffer.from(`event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${data}\n\n`);
}

/** Calls `each` for all of them, a slice per turn: other requests are answered in between. */
export async function inSlices<T>(items: Iterable<T>, each: (item: T) => void): Promise<void> {
  let done = 0;
  for (const item of items) {
    each(item);
    done += 1;
    if (done % SLICE === 0) await nextTurn();
  }
}

/** One answer that stays open. */
export class EventStream {
  readonly #raw: FastifyReply['raw'];
  #quiet = false;

  constructor(reply: FastifyReply) {
    this.#raw = reply.raw;
  }

  /** Answers with the headers. Whoever has gone already gets nothing. */
  begin(reply: FastifyReply): void {
    reply.hijack(); // from here on, Fastify's time limit of this request is none either
    if (this.#raw.destroyed) return;
    this.#raw.setTimeout(0, () => undefined); // of this answer; Node.js sets it anew for the next one on the same connection
    this.#raw.writeHead(200, { ...(reply.getHeaders() as OutgoingHttpHeaders), ...HEADERS });
    this.#raw.write(`retry: ${RETRY_MS.least + Math.floor(Math.random() * RETRY_MS.spread)}\n\n`);
  }

  /** Sends bytes, which may be the same for all; nobody's are kept without end: who does not read is cut off. */
  write(bytes: Buffer): void {
    if (this.closed) return;
    if (this.#raw.writableLength > MOST_UNREAD) {
      this.#raw.destroy(); // with its connection
      return;
    }
    this.#quiet = false;
    this.#raw.write(bytes);
  }

  /** Called twice per heartbeat: says something if nothing was said since the last call. */
  beat(): void {
    if (this.#quiet) this.write(HEARTBEAT);
    this.#quiet = true;
  }

  /** Ends the answer; the listener comes back unless it knows better. */
  end(): void {
    if (!this.closed) this.#raw.end();
  }

  get closed(): boolean {
    return this.#raw.destroyed || this.#raw.writableEnded;
  }

  /** Once: ended, cut off, or gone by itself. At once if it is closed already. */
  onClose(callBack: () => void): void {
    if (this.#raw.destroyed) callBack();
    else this.#raw.once('close', callBack);
  }
}

/** All streams of a process. */
export class EventStreams {
  readonly #open = new Set<EventStream>();
  readonly #limits: { max: number; heartbeatMs: number };
  #beating: NodeJS.Timeout | undefined;
  #closing = false;

  /** @param limits `max` streams at once; a listener hears something at least every `heartbeatMs` */
  constructor(limits: { max: number; heartbeatMs: number }) {
    this.#limits = limits;
  }

  /**
   * Answers a request with a stream. What is written in the same turn is still sent when the process is closing.
   * @param kind for the metric: one of a few words
   * @throws {Problem} `overloaded` when there are as many as there may be
   */
  open(kind: string, reply: FastifyReply): EventStream {
    if (this.#open.size >= this.#limits.max) {
      throw new Problem('overloaded', 'this process has as many event streams as EVENT_STREAMS_MAX allows');
    }
    const stream = new EventStream(reply);
    stream.begin(reply);
    this.#open.add(stream);
    eventStreams.inc({ kind });
    this.#beating ??= setInterval(() => void inSlices(this.#open, (each) => each.beat()), this.#limits.heartbeatMs / 2);
    stream.onClose(() => {
      this.#open.delete(stream);
      eventStreams.dec({ kind });
      if (this.#open.size === 0) this.#rest();
    });
    // A reader is not refused: it would take that for good, and not look for another process.
    if (this.#closing) setImmediate(() => stream.end());
    return stream;
  }

  /** Ends all of them, so that nobody waits for them when the app closes. */
  close(): void {
    this.#closing = true;
    for (const stream of this.#open) stream.end();
  }

  #rest(): void {
    clearInterval(this.#beating);
    this.#beating = undefined;
  }
}
