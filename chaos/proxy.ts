/**
 * A TCP proxy between one process and one store. Told to, it goes half-open: it accepts, keeps every connection open and
 * swallows what is sent, as a network does that lost its way; or it takes its time. With several targets it is a plain
 * balancer that takes the next one for each connection.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export type Swallowed = 'both ways' | 'requests' | 'replies';

/** Both ends of one connection. `torn`: something of it was swallowed, so that what follows could not be understood. */
type Pair = { client: Socket; store: Socket; requests: Lane; replies: Lane; torn: boolean };

export class Proxy {
  #server: Server;
  #targets: number[];
  #next = 0;
  #pairs = new Set<Pair>();
  #swallowed: Swallowed | undefined;
  #delayMs = 0;

  private constructor(targets: number[]) {
    this.#targets = targets;
    this.#server = createServer((client) => this.#accept(client));
  }

  /** @param targets ports of 127.0.0.1 */
  static async start(...targets: number[]): Promise<Proxy> {
    const proxy = new Proxy(targets);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  cut(swallowed: Swallowed): void {
    this.#swallowed = swallowed;
  }

  /** From here on bytes pass again. A connection that lost some is of no use any more and is broken off. */
  heal(): void {
    this.#swallowed = undefined;
    for (const pair of this.#pairs) if (pair.torn) this.#end(pair);
  }

  /** @param delayMs for every byte, each way; 0 ends it */
  slow(delayMs: number): void {
    this.#delayMs = delayMs;
  }

  async close(): Promise<void> {
    this.#swallowed = undefined;
    for (const pair of this.#pairs) this.#end(pair);
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    const target = this.#targets[this.#next % this.#targets.length] ?? 0;
    this.#next += 1;
    const store = connect(target, '127.0.0.1');
    const pair = { client, store, requests: new Lane(store), replies: new Lane(client), torn: false };
    this.#pairs.add(pair);
    for (const socket of [client, store]) {
      socket.setNoDelay(true);
      socket.on('error', () => socket.destroy()); // which closes it, and that is what counts
      socket.on('close', () => this.#closed(pair));
    }
    client.on('data', (bytes) => this.#pass(pair, 'requests', bytes));
    store.on('data', (bytes) => this.#pass(pair, 'replies', bytes));
  }

  #pass(pair: Pair, direction: 'requests' | 'replies', bytes: Buffer): void {
    if (this.#swallowed === 'both ways' || this.#swallowed === direction) pair.torn = true;
    else pair[direction].push(bytes, this.#delayMs);
  }

  /** One end has closed. While the way is cut, the other end does not hear of that either. */
  #closed(pair: Pair): void {
    if (this.#swallowed === undefined) this.#end(pair);
    else pair.torn = true;
  }

  #end(pair: Pair): void {
    this.#pairs.delete(pair);
    pair.client.destroy();
    pair.store.destroy();
  }
}

/** One direction of a connection: bytes arrive in the order in which they were sent, however long each is to take. */
class Lane {
  #to: Socket;
  #waiting: { bytes: Buffer; at: number }[] = [];

  constructor(to: Socket) {
    this.#to = to;
  }

  push(bytes: Buffer, delayMs: number): void {
    if (delayMs === 0 && this.#waiting.length === 0) {
      this.#to.write(bytes);
      return;
    }
    this.#waiting.push({ bytes, at: performance.now() + delayMs });
    if (this.#waiting.length === 1) this.#wait();
  }

  #wait(): void {
    const [first] = this.#waiting;
    if (!first) return;
    setTimeout(
      () => {
        this.#waiting.shift();
        if (!this.#to.destroyed) this.#to.write(first.bytes);
        this.#wait();
      },
      Math.max(0, first.at - performance.now()),
    );
  }
}
