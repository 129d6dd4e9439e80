/**
 * One reading for many listeners. However many listen in a process, all topics that anybody listens to are read in one
 * call per tick; what has changed is made into bytes once, and the same bytes go to all. Nothing is read while nobody
 * listens.
 *
 * An event's id is made from what it says, and not counted: a listener that comes back through another process, with the
 * id of the last event it saw, is told nothing until something has changed since. A counter would begin anew there.
 */
import { createHash } from 'node:crypto';
import type { Log } from '../operations/stores.ts';
import { codeOf } from './errors.ts';
import { eventBytes, inSlices, type EventStream } from './events.ts';
import { Problem, type ProblemCode } from './problem.ts';

/**
 * What a topic is: an event with one line of data, in which `identity` is what counts as a change (all of it, if left
 * out), and nothing comes after the `last` one. Or why it cannot be told, with the error to be logged.
 */
export type Reading =
  { event: string; data: string; identity?: string; last?: boolean } | { away: ProblemCode; error?: unknown };

export type FanOutOptions = {
  /** For the log. */
  name: string;
  /** From the end of a reading to the next, in milliseconds. */
  everyMs: number;
  /** Reads topics. When it rejects, each of them is away. */
  read: (topics: string[]) => Promise<Map<string, Reading>>;
  /** Of what is away, that which a new listener waits for; it is refused by the name of anything else. */
  waitsFor: ProblemCode[];
  log: Log;
};

/** Sent as it is. What is away has the id of no event, so that whatever comes back is sent again. */
type State = { id: string; identity: string; bytes: Buffer; last: boolean; away?: ProblemCode };
type Member = { stream: EventStream; sent: string | undefined };
type Topic = { state: State | undefined; first: Promise<void>; members: Set<Member>; waiting: number };

/** A reading that failed. */
export function awayBy(error: unknown): Reading {
  return error instanceof Problem ? { away: error.code } : { away: codeOf(error), error };
}

export class FanOut {
  readonly #topics = new Map<string, Topic>();
  readonly #options: FanOutOptions;
  #timer: NodeJS.Timeout | undefined;
  #ticking = false;

  constructor(options: FanOutOptions) {
    this.#options = options;
  }

  /**
   * Tells a listener what a topic is, unless it is what the listener knows, and then whatever it becomes.
   * @param lastEventId the id of the last event that the listener saw
   * @param open called once it is known that there is something to be told
   * @returns false when the listener knows all that will ever be told
   * @throws {Problem} when the topic is away and nobody waits for that, or by `open`
   */
  async listen(name: string, lastEventId: string | undefined, open: () => EventStream): Promise<boolean> {
    const topic = this.#topics.get(name) ?? this.#begin(name);
    topic.waiting += 1;
    try {
      await topic.first;
      const { state } = topic;
      if (state?.away && !this.#options.waitsFor.includes(state.away)) throw new Problem(state.away);
      if (state?.last && state.id === lastEventId) return false;
      this.#join(name, topic, { stream: open(), sent: lastEventId });
      return true;
    } finally {
      topic.waiting -= 1;
      this.#forget(name, topic);
    }
  }

  #begin(name: string): Topic {
    const topic: Topic = { state: undefined, first: Promise.resolve(), members: new Set(), waiting: 0 };
    topic.first = this.#read([name]).then((readings) => {
      this.#update(name, topic, readings.get(name));
      this.#schedule();
    });
    this.#topics.set(name, topic);
    return topic;
  }

  #join(name: string, topic: Topic, member: Member): void {
    topic.members.add(member);
    member.stream.onClose(() => {
      topic.members.delete(member);
      this.#forget(name, topic);
    });
    if (topic.state) tell(member, topic.state);
  }

  #forget(name: string, topic: Topic): void {
    if (topic.waiting > 0 || topic.members.size > 0 || this.#topics.get(name) !== topic) return;
    this.#topics.delete(name);
    if (this.#topics.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** One reading at a time: the next is due when the last one has gone to all. */
  #schedule(): void {
    if (this.#timer !== undefined || this.#ticking || this.#topics.size === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#ticking = true;
      void this.#tick().finally(() => {
        this.#ticking = false;
        this.#schedule();
      });
    }, this.#options.everyMs).unref(); // the server keeps the process alive
  }

  async #tick(): Promise<void> {
    const topics = [...this.#topics].filter(([, { state }]) => state !== undefined); // others are being read
    const readings = await this.#read(topics.map(([name]) => name));
    for (const [name, topic] of topics) {
      if (!this.#update(name, topic, readings.get(name))) continue;
      const { state } = topic;
      if (state) await inSlices(topic.members, (member) => tell(member, state));
    }
  }

  async #read(names: string[]): Promise<Map<string, Reading>> {
    try {
      return await this.#options.read(names);
    } catch (error) {
      return new Map(names.map((name) => [name, awayBy(error)]));
    }
  }

  /** @returns whether there is something new */
  #update(name: string, topic: Topic, reading: Reading = awayBy(new Error('the topic was not read'))): boolean {
    const state = stateOf(reading, topic.state);
    if (state === topic.state) return false;
    topic.state = state;
    if ('error' in reading) {
      const { log, name: streams } = this.#options;
      log.warn(
        { err: reading.error, streams, name },
        'event streams cannot tell what is: they wait until it can be read',
      );
    }
    return true;
  }
}

function tell(member: Member, { id, bytes, last }: State): void {
  if (member.sent !== id) member.stream.write(bytes); // one that joined a moment ago has it
  member.sent = id;
  if (last) member.stream.end();
}

/** @returns `known` when the reading says no more than that */
function stateOf(reading: Reading, known: State | undefined): State {
  if ('away' in reading) {
    const { away } = reading;
    if (known?.away === away) return known;
    const bytes = eventBytes({ event: 'unavailable', data: JSON.stringify({ code: away }) });
    return { id: `unavailable ${away}`, identity: '', bytes, last: false, away };
  }
  const { event, data, identity = data, last = false } = reading;
  if (known && !known.away && known.identity === identity) return known;
  const id = createHash('sha256').update(`${event} ${identity}`).digest('base64url').slice(0, 16);
  return { id, identity, bytes: eventBytes({ event, id, data }), last };
}
