/** No write of a keeper goes without the fence: each script is looked at, and each transaction. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const read = (...path: string[]) => readFileSync(join(ROOT, ...path), 'utf8');

/** Scripts that check no token, and why that is right. */
const NOT_FENCED: Record<string, string> = {
  common: 'prepended to the others',
  reserve: 'a buyer’s',
  queued: 'the sender’s: it takes a mark off a hold that is in the queue',
  open: 'compares the token itself, in every step',
  join: 'leases: says who is alive',
  renew: 'leases: acts only on its own value',
  drop: 'leases: acts only on its own value',
};

const scripts = readdirSync(join(ROOT, 'lua')).map((file) => file.replace(/\.lua$/, ''));
const FENCE = "if fenced(ARGV[1]) then return { 'stale' } end";
const WRITE =
  /redis\.call\('(SET|DEL|UNLINK|H(SET|DEL|INCRBY)|S(ADD|REM)|Z(ADD|REM)\w*|INCRBY|DECRBY|P?EXPIRE)'|take_holds|even_when_full/;

describe('scripts', () => {
  test('the list of those without is exact', () => {
    expect(scripts).toEqual(expect.arrayContaining(Object.keys(NOT_FENCED)));
  });

  test.each(scripts.filter((name) => !(name in NOT_FENCED)))('%s is fenced before it writes', (name) => {
    const text = read('lua', `${name}.lua`);
    expect(text).toContain(FENCE);
    expect(text.slice(0, text.indexOf(FENCE))).not.toMatch(WRITE);
  });

  test('open refuses an older token in each step, before it writes', () => {
    const text = read('lua', 'open.lua');
    const begin = text.slice(text.indexOf("if step == 'begin'"), text.indexOf("return 'begun'"));
    expect(begin).toContain("if token < known then return 'stale' end");
    expect(begin.slice(0, begin.indexOf("'stale'"))).not.toMatch(WRITE);
    const rest = text.slice(text.indexOf("return 'begun'"));
    expect(rest).toContain("if token ~= known then return 'stale' end");
    expect(rest.slice(0, rest.indexOf("'stale'"))).not.toMatch(WRITE);
  });
});

/** Where a keeper's transactions are, and how many of them there are. */
const TRANSACTIONS: Record<string, number> = {
  'src/keeper/reconcile.ts': 1,
  'src/operations/finish.ts': 1,
  'src/operations/open.ts': 1,
};

describe('transactions', () => {
  test('a keeper has them in these files only', () => {
    const own = readdirSync(join(ROOT, 'src/keeper')).filter((file) =>
      /\btransaction\(/.test(read('src/keeper', file)),
    );
    expect(own.map((file) => `src/keeper/${file}`)).toEqual(
      Object.keys(TRANSACTIONS).filter((file) => file.startsWith('src/keeper/')),
    );
  });

  test.each(Object.entries(TRANSACTIONS))('%s fences each of its transactions', (file, count) => {
    const text = read(file);
    expect(text.match(/\btransaction\(/g)).toHaveLength(count);
    expect(text.match(/await fence\(client,/g)).toHaveLength(count);
  });

  test('what is due expires behind the fence', () => {
    const text = read('src/ledger/orders.ts');
    const body = text.slice(text.indexOf('export async function expireDue'));
    const expiring = body.slice(0, body.indexOf('\n}\n'));
    expect(expiring.indexOf('await fence(client, saleId, scope.tokenOf(saleId))')).toBeGreaterThan(0);
    expect(expiring.indexOf('return end(')).toBeGreaterThan(expiring.indexOf('await fence('));
  });
});
