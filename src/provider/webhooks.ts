/**
 * Delivers signed events (Standard Webhooks) for the stand-in payment provider: again and again with backoff until the
 * receiver answers 2xx, under the same webhook-id each time, so that a receiver can tell a repetition.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import { Webhook } from 'standardwebhooks';
import { Agent, request } from 'undici';

export type PaymentEvent = {
  type: 'payment.succeeded' | 'payment.failed' | 'payment.canceled' | 'refund.succeeded' | 'refund.failed';
  timestamp: string;
  data: { paymentId: string; reservationId: string; amount: number; currency: string };
};

export type SenderOptions = {
  url: string;
  /** One or more `whsec_` secrets, space-separated: an event carries one signature for each. */
  secret: string;
  /** Deliveries in flight at once. */
  concurrency: number;
  /** Tries per event before it is given up. */
  attempts: number;
  /** Pause after the first failed try, in milliseconds; it doubles up to 5 s. */
  backoffMs: number;
  timeoutMs: number;
};

const LONGEST_PAUSE_MS = 5000;

export class WebhookSender {
  #options: SenderOptions;
  #log: FastifyBaseLogger;
  #signers: Webhook[];
  #agent: Agent;
  #closing = new AbortController();
  #pending = new Set<Promise<void>>();
  #toDrop = 0;

  constructor(options: SenderOptions, log: FastifyBaseLogger) {
    this.#options = options;
    this.#log = log;
    this.#signers = options.secret
      .split(/\s+/)
      .filter((secret) => secret !== '')
      .map((secret) => new Webhook(secret));
    if (this.#signers.length === 0) throw new Error('the provider needs a webhook secret: whsec_ and base64');
    this.#agent = new Agent({
      connections: options.concurrency,
      headersTimeout: options.timeoutMs,
      bodyTimeout: options.timeoutMs,
    });
  }

  /** The next `count` tries are lost on the way: the receiver never sees them, and they are tried again. */
  dropNext(count: number): void {
    this.#toDrop = count;
  }

  /**
   * Starts delivering and returns at once.
   * @param copies how many deliveries of the same event (same id) run side by side
   * @param onDelivered called at each first 2xx of a copy
   */
  send(eventId: string, event: PaymentEvent, delayMs: number, copies: number, onDelivered: () => void): void {
    const body = JSON.stringify(event);
    for (let copy = 0; copy < copies; copy += 1) {
      const delivery = this.#deliver(eventId, body, delayMs)
        .then((delivered) => (delivered ? onDelivered() : undefined))
        .finally(() => this.#pending.delete(delivery));
      this.#pending.add(delivery);
    }
  }

  /** Stops trying; what was not delivered is forgotten with the rest of the stand-in's memory. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#pending);
    await this.#agent.destroy();
  }

  async #deliver(eventId: string, body: string, delayMs: number): Promise<boolean> {
    let pause = delayMs;
    for (let attempt = 1; attempt <= this.#options.attempts; attempt += 1) {
      if (!(await this.#rest(pause))) return false;
      const failure = await this.#attempt(eventId, body);
      if (failure === undefined) return true;
      if (this.#closing.signal.aborted) return false;
      this.#log.info({ eventId, attempt, failure }, 'webhook not accepted, will try again');
      pause = Math.min(this.#options.backoffMs * 2 ** (attempt - 1), LONGEST_PAUSE_MS) * (0.5 + Math.random() / 2);
    }
    this.#log.warn({ eventId, attempts: this.#options.attempts }, 'webhook given up');
    return false;
  }

  /** One try. @returns why it failed, or undefined when the receiver answered 2xx */
  async #attempt(eventId: string, body: string): Promise<string | undefined> {
    if (this.#toDrop > 0) {
      this.#toDrop -= 1;
      return 'dropped on purpose';
    }
    const at = new Date();
    try {
      const { statusCode, body: answer } = await request(this.#options.url, {
        method: 'POST',
        dispatcher: this.#agent,
        signal: this.#closing.signal,
        headers: {
          'content-type': 'application/json',
          'webhook-id': eventId,
          'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
          'webhook-signature': this.#signers.map((signer) => signer.sign(eventId, at, body)).join(' '),
        },
        body,
      });
      await answer.dump();
      return statusCode >= 200 && statusCode < 300 ? undefined : `HTTP ${statusCode}`;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** @returns false when the sender is closing */
  async #rest(ms: number): Promise<boolean> {
    const { signal } = this.#closing;
    if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => undefined); // rejects only when it is closing
    return !signal.aborted;
  }
}
