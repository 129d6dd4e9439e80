/** Event streams on a bare server, and a reader of them: connections are real, only what is told is the test's own. */
import { connect, type Socket } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { EventStreams } from '../../src/http/events.ts';
import { FanOut, type FanOutOptions } from '../../src/http/fan-out.ts';
import { errorHandler } from '../../src/http/errors.ts';

export type Told = { event: string; id: string | undefined; data: string };

/** A listener over a socket of its own, which reads as an EventSource does. */
export class Listener {
  status = 0;
  head = '';
  retryMs = 0;
  heartbeats = 0;
  readonly events: Told[] = [];
  readonly ended: Promise<void>;
  readonly socket: Socket;
  #rest = '';

  constructor(
    url: string,
    { lastEventId, headers = {} }: { lastEventId?: string; headers?: Record<string, string> } = {},
  ) {
    const { hostname, port, pathname, search } = new URL(url);
    const all = { host: 'x', ...headers, ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }) };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    this.socket = connect(Number(port), hostname);
    this.socket.setEncoding('utf8').on('data', (text: string) => this.#take(text));
    this.socket.on('error', () => undefined); // cut off, which `ended` tells of
    this.ended = new Promise((resolve) => this.socket.once('close', () => resolve()));
    this.socket.write(`GET ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n`);
  }

  /** Whether the answer has come to its end, with the connection kept. */
  done = false;

  #take(text: string): void {
    this.#rest += text;
    if (this.head === '') {
      const end = this.#rest.indexOf('\r\n\r\n');
      if (end < 0) return;
      this.head = this.#rest.slice(0, end);
      this.status = Number(this.head.split(' ')[1]);
      this.#rest = this.#rest.slice(end + 4);
      if (this.status !== 200) this.done = true; // what follows is a document, or nothing
    }
    // Chunks of one write are whole lines; their sizes stand alone in a line and end in CRLF.
    for (;;) {
      const size = /^([0-9a-f]+)\r\n/.exec(this.#rest);
      const length = Number.parseInt(size?.[1] ?? '', 16);
      const begin = size?.[0].length ?? 0;
      if (!size || this.#rest.length < begin + length + 2) return;
      this.#event(this.#rest.slice(begin, begin + length));
      this.#rest = this.#rest.slice(begin + length + 2);
      if (length === 0) this.done = true;
    }
  }

  #event(text: string): void {
    for (const block of text.split('\n\n')) {
      const fields = new Map(block.split('\n').map((line) => line.split(/: ?(.*)/s, 2) as [string, string]));
      if (fields.has('retry')) this.retryMs = Number(fields.get('retry'));
      else if (block === ':') this.heartbeats += 1;
      else if (fields.has('data')) {
        const { event = '', data = '', id } = Object.fromEntries(fields) as Record<string, string>;
        this.events.push({ event, id, data });
      }
    }
  }
}

export type Bare = {
  app: FastifyInstance;
  streams: EventStreams;
  url: string;
  /** What was logged as a warning. */
  log: object[];
};

/** GET /NAME tells of the topic NAME. */
export async function bare(
  read: FanOutOptions['read'],
  limits: { max?: number; heartbeatMs?: number; everyMs?: number; waitsFor?: FanOutOptions['waitsFor'] } = {},
): Promise<Bare> {
  const { max = 1000, heartbeatMs = 60_000, everyMs = 10, waitsFor = [] } = limits;
  const noted: object[] = [];
  const note = (about: object) => void noted.push(about);
  const log = { debug: note, info: note, warn: note, error: note, fatal: note };
  const app = Fastify({ connectionTimeout: 500, requestTimeout: 500, keepAliveTimeout: 500 });
  const streams = new EventStreams({ max, heartbeatMs });
  app.addHook('preClose', (done) => {
    streams.close();
    done();
  });
  app.setErrorHandler(errorHandler(log));
  const fanOut = new FanOut({ name: 'test', everyMs, read, waitsFor, log });
  app.get<{ Params: { name: string } }>('/:name', { exposeHeadRoute: false }, async (request, reply) => {
    const lastEventId = request.headers['last-event-id'] as string | undefined;
    const open = () => streams.open('test', reply);
    if (!(await fanOut.listen(request.params.name, lastEventId, open))) return reply.code(204).send();
    return reply;
  });
  app.get('/plain', () => ({ ok: true }));
  return { app, streams, url: await app.listen({ host: '127.0.0.1', port: 0 }), log: noted };
}
