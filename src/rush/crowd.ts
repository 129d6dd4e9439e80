/** The buyers at the button: presses when each is due, whatever the server does, and remembers what each was told. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { readAnswer, type Told } from './answers.ts';
import type { Connections, Reply } from './http.ts';
import type { Plan } from './schedule.ts';
import type { Tally } from './tally.ts';

/** Epoch milliseconds by the driver's clock. */
export type Refusal = { kind: string; sentAt: number; heardAt: number };

/** What one buyer heard. `told` has each reservation once. `unknown` counts lost replies and 503s. */
export type Heard = { userId: string; told: Told[]; refusals: Refusal[]; unknown: number };

export type CrowdOptions = {
  saleId: string;
  plan: Plan;
  connections: Connections;
  tally: Tally;
  /** Called once per reservation, when its buyer first hears of it. */
  onWin: (buyer: number, told: Told) => void;
};

export class Crowd {
  heard: Heard[];
  #options: CrowdOptions;

  constructor(options: CrowdOptions) {
    this.#options = options;
    this.heard = options.plan.buyers.map(({ userId }) => ({ userId, told: [], refusals: [], unknown: 0 }));
  }

  /** Presses by the plan; ends when the last reply is in. */
  async rush(): Promise<void> {
    const { presses } = this.#options.plan;
    const stopWatching = this.#options.tally.watchDriver();
    const start = performance.now();
    const answers: Promise<void>[] = [];
    let next = 0;
    for (let due = presses[0]; due; due = presses[next]) {
      if (due.at <= performance.now() - start) {
        answers.push(this.press(due.buyer, start + due.at, due.cut));
        next += 1;
      } else {
        await sleep(1);
      }
    }
    await Promise.all(answers);
    stopWatching();
  }

  /**
   * One press; ends when its reply is in. Cut off, the buyer notices, pauses and presses again.
   * @param dueAt by performance.now()
   */
  async press(buyer: number, dueAt: number, cut: boolean): Promise<void> {
    const { plan, connections, tally } = this.#options;
    const { userId, qty, againAfterCutMs } = plan.buyers[buyer] as Plan['buyers'][number];
    tally.handed(performance.now() - dueAt);
    const { reply, sentAt } = await connections.ask(JSON.stringify({ userId, qty }), cut);
    const now = performance.now();
    this.#hear(buyer, reply, dueAt, sentAt, now);
    if (!cut) return;
    await sleep(againAfterCutMs);
    await this.press(buyer, now + againAfterCutMs, false);
  }

  #hear(buyer: number, reply: Reply, dueAt: number, sentAt: number | undefined, now: number): void {
    const heard = this.heard[buyer] as Heard;
    const answer = readAnswer(reply, { saleId: this.#options.saleId, userId: heard.userId });
    this.#options.tally.add(answer, now - dueAt, sentAt === undefined ? undefined : sentAt - dueAt);
    if (answer.is === 'refused') {
      const epoch = performance.timeOrigin;
      heard.refusals.push({ kind: answer.kind, sentAt: epoch + (sentAt ?? dueAt), heardAt: epoch + now });
    } else if (answer.is === 'told') {
      if (heard.told.some(({ reservationId }) => reservationId === answer.told.reservationId)) return;
      heard.told.push(answer.told);
      this.#options.onWin(buyer, answer.told);
    } else {
      heard.unknown += 1;
    }
  }
}
