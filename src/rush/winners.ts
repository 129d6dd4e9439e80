/** What winners do: pay, pay too late, or let the hold lapse and perhaps come back. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Told } from './answers.ts';
import { told as answerOf, type Flashgate } from '../client/client.ts';
import { Unreachable, type JsonApi } from './http.ts';
import type { Role } from './schedule.ts';

const POLL_MS = 250;
const PAYMENT_TRIES = 5;
const isFinal = (status: string) => ['PAID', 'CANCELLED', 'REJECTED', 'REFUNDED'].includes(status);

export type WinnersOptions = {
  saleId: string;
  api: Flashgate;
  provider: JsonApi;
  roles: Role[];
  /** How long after its time a hold may take to be seen as expired, in milliseconds. */
  settleMs: number;
  /** Presses again for a buyer; ends when the reply is in. */
  pressAgain: (buyer: number) => Promise<void>;
};

export class Winners {
  /** What winners could not do, in words. */
  troubles: string[] = [];
  /** When the last hold that anyone was told of expires, epoch milliseconds. */
  lastExpiry = 0;
  count = 0;
  #options: WinnersOptions;
  #running = new Set<Promise<void>>();
  #comeBack = new Set<number>();

  constructor(options: WinnersOptions) {
    this.#options = options;
  }

  /** Lets a winner act by the next role; one who has come back pays. */
  follow(buyer: number, told: Told): void {
    this.lastExpiry = Math.max(this.lastExpiry, told.expiresAt);
    const next = this.#options.roles[this.count % this.#options.roles.length] as Role;
    const role: Role = this.#comeBack.has(buyer) ? { ...next, does: 'pay' } : next;
    this.count += 1;
    const running = this.#act(buyer, told, role)
      .catch((error: unknown) => {
        this.troubles.push(`${told.userId}: ${error instanceof Error ? error.message : String(error)}`);
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Ends when every winner, also those who came back and won again, has done what was to be done. */
  async done(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async #act(buyer: number, told: Told, role: Role): Promise<void> {
    if (role.does === 'pay') {
      await sleep(role.thinkMs);
      await this.#pay(told);
    } else if (role.does === 'pay_late') {
      await this.#untilExpired(told);
      await this.#pay(told);
    } else if (role.comesBack) {
      await this.#untilExpired(told);
      this.#comeBack.add(buyer);
      await this.#options.pressAgain(buyer);
    }
  }

  /** The payment's id is made from the reservation's, so that trying again cannot pay twice. */
  async #pay({ reservationId, amount, currency }: Told): Promise<void> {
    const payment = { paymentId: `pay-${reservationId}`, reservationId, amount, currency };
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#options.provider.must('POST', '/payments', payment);
        return;
      } catch (error) {
        if (!(error instanceof Unreachable) || attempt === PAYMENT_TRIES) throw error;
        await sleep(POLL_MS);
      }
    }
  }

  /** @throws {Error} when the reservation is not EXPIRED in bounded time, with what was seen last */
  async #untilExpired({ reservationId, userId, expiresAt }: Told): Promise<void> {
    const { saleId, api, settleMs } = this.#options;
    await sleep(Math.max(0, expiresAt - Date.now()));
    const params = { path: { saleId, reservationId }, query: { userId } };
    let seen = 'nothing';
    while (Date.now() < expiresAt + settleMs) {
      try {
        const asking = api.GET('/sales/{saleId}/reservations/{reservationId}', { params });
        const { status } = await answerOf(asking);
        if (status === 'EXPIRED') return;
        seen = status;
        if (isFinal(status)) break;
      } catch (error) {
        seen = error instanceof Error ? error.message : String(error);
      }
      await sleep(POLL_MS);
    }
    const late = Math.round((Date.now() - expiresAt) / 1000);
    throw new Error(
      `reservation ${reservationId} was left unpaid and is not EXPIRED ${late} s after its time: ${seen}`,
    );
  }
}
