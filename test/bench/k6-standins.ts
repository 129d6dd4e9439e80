/**
 * Stand-ins for k6's modules, for a process that is started with `--import` of this file: k6 is a program of its own,
 * and its modules exist nowhere else. HTTP is a small model of flashgate that sells what it has.
 */
import { registerHooks } from 'node:module';

type Params = { headers?: Record<string, string>; tags?: Record<string, string> };
export type Call = { method: string; url: string; body: unknown; params: Params };

/** Shared with the script that drives rush.js (k6-run.ts). */
export const state = {
  calls: [] as Call[],
  checks: {} as Record<string, { passed: number; failed: number }>,
  counters: {} as Record<string, number>,
  iteration: 0,
  unitsLeft: 0,
  /** Statuses that count as answered, as the script told them. */
  expected: [] as number[],
  /** Instead of the model, for the next presses. */
  forced: [] as { status: number; body: object }[],
};

function reply(status: number, body: object) {
  const text = JSON.stringify(body);
  return { status, body: text, json: (name: string) => (JSON.parse(text) as Record<string, unknown>)[name] };
}

function request(method: string, url: string, text: string | null, params: Params = {}) {
  const body = text === null ? null : (JSON.parse(text) as { userId?: string; total?: number });
  state.calls.push({ method, url, body, params });
  if (method === 'PUT') {
    state.unitsLeft = body?.total ?? 0;
    return reply(201, {});
  }
  if (!url.endsWith('/reserve')) return reply(200, {});
  const forced = state.forced.shift();
  if (forced) return reply(forced.status, forced.body);
  if (state.unitsLeft === 0) return reply(409, { code: 'sold_out' });
  state.unitsLeft -= 1;
  return reply(202, { outcome: 'ok', userId: body?.userId });
}

class Counter {
  #name: string;

  constructor(name: string) {
    this.#name = name;
    state.counters[name] = 0;
  }

  add(count: number): void {
    state.counters[this.#name] = (state.counters[this.#name] ?? 0) + count;
  }
}

function check(value: unknown, checks: Record<string, (value: unknown) => boolean>): void {
  for (const [name, holds] of Object.entries(checks)) {
    const sum = (state.checks[name] ??= { passed: 0, failed: 0 });
    if (holds(value)) sum.passed += 1;
    else sum.failed += 1;
  }
}

const scenario = {
  get iterationInTest() {
    return state.iteration;
  },
};
const modules: Record<string, Record<string, unknown>> = {
  k6: { check },
  'k6/metrics': { Counter },
  'k6/execution': { default: { scenario } },
  'k6/http': {
    default: {
      put: (url: string, body: string, params?: Params) => request('PUT', url, body, params),
      post: (url: string, body: string | null, params?: Params) => request('POST', url, body, params),
      expectedStatuses: (...statuses: number[]) => statuses,
      setResponseCallback: (statuses: number[]) => void (state.expected = statuses),
    },
  },
};
const environment = Object.entries(process.env).filter(([name]) => name.startsWith('K6_TEST_'));
Object.assign(globalThis, {
  k6StandIns: modules,
  __ENV: Object.fromEntries(environment.map(([name, value]) => [name.slice('K6_TEST_'.length), value])),
});

registerHooks({
  resolve: (specifier, context, next) =>
    specifier in modules ? { url: `k6:${specifier}`, format: 'module', shortCircuit: true } : next(specifier, context),
  load: (url, context, next) => {
    const name = url.startsWith('k6:') ? url.slice('k6:'.length) : undefined;
    if (name === undefined) return next(url, context);
    const lines = Object.keys(modules[name] ?? {}).map((each) =>
      each === 'default' ? 'export default all.default;' : `export const ${each} = all[${JSON.stringify(each)}];`,
    );
    const source = `const all = globalThis.k6StandIns[${JSON.stringify(name)}];\n${lines.join('\n')}`;
    return { format: 'module', source, shortCircuit: true };
  },
});
