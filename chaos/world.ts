/** How buyers and the merchant reach the system: HTTP with a limit on their patience, every answer noted. */
import { Agent, request, type Dispatcher } from 'undici';
import type { Model } from './model.ts';
import { SECRETS } from './settings.ts';

/** Longer than the longest time in which an API promises to answer; a frozen one does not answer at all. */
const PATIENCE_MS = 2500;

export type Answer = { status: number; body: Record<string, unknown> };

/** What an answer may be called by. Anything else that is answered is a finding. */
const KNOWN: Record<number, readonly string[]> = {
  200: ['dup', 'shown'],
  202: ['ok'],
  204: ['given_up'],
  404: ['reservation_not_found'],
  409: ['sold_out', 'already_paid', 'total_too_low'],
  422: ['qty_over_limit'],
  503: [
    ...['paused', 'gate_not_loaded', 'gate_unavailable', 'queue_unavailable', 'ledger_unavailable', 'overloaded'],
    'not_ready',
  ],
};

export class World {
  readonly model: Model;
  readonly ending: AbortSignal;
  readonly providerUrl: string;
  #apis: readonly [string, string];
  #agent = new Agent({
    connections: 32,
    headersTimeout: PATIENCE_MS,
    bodyTimeout: PATIENCE_MS,
    connect: { timeout: 1000 },
  });

  constructor(model: Model, apis: readonly [string, string], providerUrl: string, ending: AbortSignal) {
    this.model = model;
    this.ending = ending;
    this.providerUrl = providerUrl;
    this.#apis = apis;
  }

  /**
   * A request to one of the APIs.
   * @param cutAfterMs the line is cut then, whatever has come
   * @returns undefined when no answer came
   */
  async ask(
    api: 0 | 1,
    method: Dispatcher.HttpMethod,
    path: string,
    options: { body?: object; admin?: boolean; cutAfterMs?: number } = {},
  ): Promise<Answer | undefined> {
    const token = options.admin ? SECRETS.ADMIN_TOKEN : SECRETS.SERVICE_TOKEN;
    const signal = options.cutAfterMs === undefined ? undefined : AbortSignal.timeout(Math.ceil(options.cutAfterMs));
    try {
      const answer = await request(this.#apis[api] + path, {
        method,
        dispatcher: this.#agent,
        ...(signal ? { signal } : {}),
        headers: {
          authorization: `Bearer ${token}`,
          ...(options.body ? { 'content-type': 'application/json' } : {}),
        },
        body: options.body ? JSON.stringify(options.body) : null,
      });
      const text = await answer.body.text();
      const body = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
      this.#note(`${method} ${path}`, answer.statusCode, body);
      return { status: answer.statusCode, body };
    } catch (error) {
      if (error instanceof SyntaxError) this.model.wrongAnswers.push(`${method} ${path}: not JSON: ${error.message}`);
      this.model.answered(signal?.aborted ? 'cut off' : 'no answer');
      return undefined;
    }
  }

  #note(what: string, status: number, body: Record<string, unknown>): void {
    const { code, outcome, reservationId } = body as { code?: string; outcome?: string; reservationId?: string };
    const kind = status === 204 ? 'given_up' : (code ?? outcome ?? (reservationId === undefined ? 'done' : 'shown'));
    this.model.answered(kind);
    if (KNOWN[status]?.includes(kind) || kind === 'done') return;
    this.model.wrongAnswers.push(`${what}: ${status} ${JSON.stringify(body)}`);
  }

  apiUrl(api: 0 | 1): string {
    return this.#apis[api];
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}
