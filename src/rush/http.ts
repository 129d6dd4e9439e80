/**
 * The rush's HTTP. {@link Connections} fires buyers' presses over a fixed number of keep-alive connections and can cut one
 * off: what is measured has nothing between itself and the socket, and is never tried again. Everything else that is asked
 * of the API goes through src/client, over connections of {@link limitedFetch}; {@link JsonApi} is for the payment provider.
 */
import { performance } from 'node:perf_hooks';
import { Agent, Client, Pool, type Dispatcher } from 'undici';

/** `failure` instead of an answer: `cut` (on purpose), `timeout`, or the connection error's code. */
export type Reply = { status: number; body: string } | { failure: string };

/** `sentAt` (performance.now) is when the request was written to its connection; undefined: it never was. */
export type Asked = { reply: Reply; sentAt: number | undefined };

type Exchange = { body: string; cut: boolean; sentAt: number | undefined; done: (asked: Asked) => void };

export type Target = { origin: string; prefix: string };

/** Splits a base address: `http://host:port/some/path` → origin and path without a trailing slash. */
export function target(base: string): Target {
  const { origin, pathname } = new URL(base);
  return { origin, prefix: pathname.replace(/\/+$/, '') };
}

const CUT = new Error('cut off on purpose');

/** A fixed number of connections, one request at a time on each; who finds none free waits in line. */
export class Connections {
  #clients: Client[];
  #free: Client[];
  #waiting: Exchange[] = [];
  #next = 0;
  #request: { path: string; method: 'POST'; headers: string[] };

  /** @param timeoutMs until the headers, and between parts of the body */
  constructor(origin: string, path: string, headers: Record<string, string>, count: number, timeoutMs: number) {
    const options = { pipelining: 1, headersTimeout: timeoutMs, bodyTimeout: timeoutMs, connectTimeout: timeoutMs };
    this.#clients = Array.from({ length: count }, () => new Client(origin, options));
    this.#free = [...this.#clients];
    const all = { 'content-type': 'application/json', ...headers };
    this.#request = { path, method: 'POST', headers: Object.entries(all).flat() };
  }

  /** Opens every connection with a GET that is not counted, so that the rush does not measure the handshakes. */
  async warm(path: string): Promise<void> {
    await Promise.all(
      this.#clients.map(async (client) => {
        const { body } = await client.request({ path, method: 'GET' });
        await body.dump();
      }),
    );
  }

  /**
   * Sends one request on the next free connection.
   * @param cut destroy the connection once the request is written, before any reply
   */
  ask(body: string, cut: boolean): Promise<Asked> {
    return new Promise((done) => {
      const exchange: Exchange = { body, cut, sentAt: undefined, done };
      const client = this.#free.pop();
      if (client) this.#dispatch(client, exchange);
      else this.#waiting.push(exchange);
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.destroy()));
  }

  #dispatch(client: Client, exchange: Exchange): void {
    const finish = (reply: Reply) => {
      const next = this.#waiting[this.#next];
      if (next) {
        this.#next += 1;
        this.#dispatch(client, next);
      } else {
        if (this.#next > 0) this.#waiting = [];
        this.#next = 0;
        this.#free.push(client);
      }
      exchange.done({ reply, sentAt: exchange.sentAt });
    };
    client.dispatch({ ...this.#request, body: exchange.body }, handlerFor(exchange, finish));
  }
}

function handlerFor(exchange: Exchange, finish: (reply: Reply) => void): Dispatcher.DispatchHandler {
  let status = 0;
  let first: Buffer | undefined;
  let more: Buffer[] | undefined;
  return {
    onRequestStart(controller) {
      exchange.sentAt = performance.now();
      // This is called just before the request is written, in the same turn; the next tick comes after the writing and
      // before any reply can be read.
      if (exchange.cut) process.nextTick(() => controller.abort(CUT));
    },
    onResponseStart(_controller, statusCode) {
      status = statusCode;
    },
    onResponseData(_controller, chunk) {
      if (!first) first = chunk;
      else (more ??= [first]).push(chunk);
    },
    onResponseEnd() {
      finish({ status, body: (more ? Buffer.concat(more) : first)?.toString() ?? '' });
    },
    onResponseError(_controller, error) {
      finish({ failure: failureOf(error) });
    },
  };
}

/** A short name for what went wrong on the way, to be counted by. */
function failureOf(error: Error & { code?: string; cause?: unknown }): string {
  if (error === CUT) return 'cut';
  const code = error.code ?? error.name;
  return code.endsWith('_TIMEOUT') ? 'timeout' : code;
}

/** So that thousands of winners who look at their reservations do not open thousands of connections. */
const UNMEASURED_CONNECTIONS = 8;

/** For src/client: the global fetch over a few connections of their own. */
export function limitedFetch() {
  const agent = new Agent({ connections: UNMEASURED_CONNECTIONS });
  // Node.js' own undici takes this one's agents; only its copy of the types is another.
  const dispatcher = agent as unknown as NonNullable<RequestInit['dispatcher']>;
  return {
    fetch: (request: Request, init: { signal: AbortSignal }) => fetch(request, { ...init, dispatcher }),
    close: () => agent.destroy(),
  };
}

/** No answer could be had; the message says from where and why. */
export class Unreachable extends Error {}

/** The payment provider's interface, which is not flashgate's own. */
export class JsonApi {
  #pool: Pool;
  #base: string;
  #target: Target;
  #headers: Record<string, string>;

  constructor(base: string, token: string | undefined, timeoutMs: number) {
    this.#base = base;
    this.#target = target(base);
    const limits = { connections: UNMEASURED_CONNECTIONS, headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
    this.#pool = new Pool(this.#target.origin, limits);
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  /**
   * @returns the parsed body, undefined when it is empty
   * @throws {Unreachable} without an answer, with one that is not JSON, and for a status that is not 2xx
   */
  async must(method: 'GET' | 'POST', path: string, body?: unknown): Promise<unknown> {
    const about = `${method} ${this.#base}${path}`;
    const answer = await this.#call(method, path, body).catch((error: unknown) => {
      const why = error instanceof Error ? error.message || String((error as { code?: string }).code) : String(error);
      throw new Unreachable(`${about}: ${why}`, { cause: error });
    });
    if (answer.status >= 200 && answer.status < 300) return answer.body;
    throw new Unreachable(`${about}: HTTP ${answer.status} ${JSON.stringify(answer.body)}`);
  }

  async #call(method: 'GET' | 'POST', path: string, body: unknown): Promise<{ status: number; body: unknown }> {
    const answer = await this.#pool.request({
      method,
      path: this.#target.prefix + path,
      headers: { ...this.#headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, body: text === '' ? undefined : JSON.parse(text) };
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}
