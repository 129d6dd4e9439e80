/**
 * Buyers that go on asking while something is done to the API: some keep their connection, some open one for each
 * request. Whatever is not answered is kept with its reason.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, Client, request, type Dispatcher } from 'undici';

export type Asked = { method: Dispatcher.HttpMethod; path: string; headers?: Record<string, string>; body?: string };

export type Load = {
  /** Answers so far, over kept connections and over new ones. */
  answered: () => { kept: number; fresh: number };
  /** Ends it. `answers` counts by "status code-or-outcome"; `lost` says why a request got no answer. */
  stop: () => Promise<{ answers: Record<string, number>; lost: string[] }>;
};

const KEPT = 24;
const FRESH = 4;
/** Between two requests of a buyer: a connection falls idle, and is used again. */
const PAUSE_MS = 5;
/** Who has no answer by then has none. */
const ANSWER_MS = 20_000;

/** @param next what is asked next */
export function startLoad(url: string, next: () => Asked): Load {
  const answers: Record<string, number> = {};
  const lost: string[] = [];
  const answered = { kept: 0, fresh: 0 };
  let stopped = false;

  const ask = async (kind: 'kept' | 'fresh', dispatcher: Dispatcher) => {
    const { path, ...asked } = next();
    try {
      const answer = await request(url + path, { dispatcher, headersTimeout: ANSWER_MS, ...asked });
      const text = await answer.body.text();
      const { code, outcome } = (text === '' ? {} : JSON.parse(text)) as { code?: string; outcome?: string };
      const name = [answer.statusCode, code ?? outcome].filter((part) => part !== undefined).join(' ');
      answers[name] = (answers[name] ?? 0) + 1;
      answered[kind] += 1;
    } catch (error) {
      lost.push(`${kind} ${asked.method} ${path}: ${String(error)}`);
    }
  };
  const keeping = new Agent({ connections: KEPT, pipelining: 1, keepAliveTimeout: 60_000 });
  const buyers = [
    ...Array.from({ length: KEPT }, () => () => ask('kept', keeping)),
    ...Array.from({ length: FRESH }, () => async () => {
      const own = new Client(url);
      await ask('fresh', own);
      await own.close();
    }),
  ].map(async (once) => {
    while (!stopped) {
      await once();
      await sleep(Math.random() * PAUSE_MS);
    }
  });
  return {
    answered: () => ({ ...answered }),
    stop: async () => {
      stopped = true;
      await Promise.all(buyers);
      await keeping.close();
      return { answers, lost };
    },
  };
}
