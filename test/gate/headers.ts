/** Reads what a script's header promises and what its body uses, so that the two can be compared. */

export type Shape = {
  name: string;
  keys: string[];
  /** The numbers of the arguments that stand alone. */
  fixed: number[];
  /** Arguments that repeat: where the first one is, and how many belong together. */
  repeats: { from: number; each: number }[];
  replies: string[];
};

/** Script files as they lie in lua/: leading comment lines are the header. */
export function split(source: string): { header: string; body: string } {
  const lines = source.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('--'));
  const header = lines.slice(0, end).map((line) => line.replace(/^-- ?/, ''));
  const body = lines.slice(end).map((line) => line.replace(/--.*$/, ''));
  return { header: header.join('\n'), body: body.join('\n') };
}

/** What the header says. */
export function promised(header: string): Shape {
  const [, name = ''] = /^(\w+):/.exec(header) ?? [];
  const section = (title: string, next: string) =>
    new RegExp(`^${title} +([\\s\\S]*?)(?=^(?:${next})\\b|$(?![\\s\\S]))`, 'm').exec(header)?.[1] ?? '';
  const keys = [...section('KEYS', 'ARGV').matchAll(/(\d+) (\w+)/g)].map(([, n, key]) => `${n ?? ''} ${key ?? ''}`);
  const args = withoutParentheses(section('ARGV', 'Reply'));
  const replies = section('Reply', 'Moves|Precedence|      Precedence').replace(/^\s*Precedence.*$/m, '');
  return {
    name,
    keys,
    fixed: unique([...args.matchAll(/(?:^|[\s,])(\d+) (?=['a-zA-Z])/g)].map(([, n]) => Number(n))),
    repeats: forms(args).flatMap(repeat),
    replies: unique([...replies.matchAll(/'(\w+)\|?'/g)].map(([, word]) => word ?? '')),
  };
}

/** An ARGV section has one form, or several that begin with their own first argument. */
function forms(args: string): string[] {
  return args.split(/(?=^\s*1 )/m).filter((form) => form.trim() !== '');
}

function repeat(form: string): Shape['repeats'] {
  const [before = '', list] = form.split(/(?:then )?per [\w ]+:/);
  if (list === undefined) return [];
  const [names = ''] = list.split(/\n\s*\d /);
  const fixed = [...before.matchAll(/(?:^|[\s,])(\d+) (?=['a-zA-Z])/g)].length;
  return [{ from: fixed + 1, each: names.split(',').length }];
}

/** What the body does. `common` is what every script gets. */
export function used(name: string, body: string, common: string): Shape {
  const names = /local ([A-Z, ]+) = KEYS/.exec(common)?.[1]?.split(', ') ?? [];
  const calls = withoutCalls(body);
  const takes = [...body.matchAll(/take_holds\((\d+)/g)].map(([, from]) => ({ from: Number(from), each: 2 }));
  const loops = [...body.matchAll(/for i = (\d+), #ARGV(?:, (\d+))?/g)].map(([, from, each]) => ({
    from: Number(from),
    each: Number(each ?? 1),
  }));
  const rests = [...body.matchAll(/\{ unpack\(ARGV, (\d+)\) \}/g)].map(([, from]) => ({ from: Number(from), each: 1 }));
  return {
    name,
    keys: names.map((key, n) => `${n + 1} ${key.toLowerCase()}`),
    fixed: unique([...body.matchAll(/ARGV\[(\d+)\]/g)].map(([, n]) => Number(n))),
    repeats: [...takes, ...loops, ...rests].filter((one, n, all) => all.findIndex((other) => same(one, other)) === n),
    replies: unique([
      ...[...calls.matchAll(/'([a-z_]+)\|?'/g)].map(([, word]) => word ?? ''),
      ...(/return \{ (?:ARGV\[1\], )?here \}/.test(body) ? ['not_loaded', 'loading'] : []),
      ...(takes.length > 0 ? ['loaded', 'not_held'] : []),
    ]),
  };
}

/** Without Redis calls and comparisons: the words that are left are answers. */
function withoutCalls(body: string): string {
  let rest = body.replaceAll(/[=~]= '\w+'/g, '');
  for (let at = rest.indexOf('redis.call('); at >= 0; at = rest.indexOf('redis.call(')) {
    let depth = 0;
    let end = at + 'redis.call'.length;
    do {
      if (rest[end] === '(') depth += 1;
      if (rest[end] === ')') depth -= 1;
      end += 1;
    } while (depth > 0 && end < rest.length);
    rest = rest.slice(0, at) + rest.slice(end);
  }
  return rest;
}

const withoutParentheses = (text: string) => text.replaceAll(/\([^)]*\)/g, '');
const same = (a: object, b: object) => JSON.stringify(a) === JSON.stringify(b);
const unique = <T>(all: T[]): T[] => [...new Set(all)].sort((a, b) => (a < b ? -1 : 1));
