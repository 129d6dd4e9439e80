/** A script's header tells its KEYS, ARGV and replies: it must not rot. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { gateKeys } from '../../src/gate/keys.ts';
import { promised, split, used } from './headers.ts';

const FOLDER = join(import.meta.dirname, '../../lua');
const read = (file: string) => readFileSync(join(FOLDER, file), 'utf8');
const COMMON = read('common.lua');
/** The scripts that work on a sale's gate. */
const GATE = ['adopt', 'configure', 'forfeit', 'open', 'queued', 'release', 'reserve', 'settle', 'unqueued'];
const source = (name: string) => split(read(`${name}.lua`));

test('every gate script is there', () => {
  const names = readdirSync(FOLDER).map((file) => file.replace(/\.lua$/, ''));
  expect(names).toEqual(expect.arrayContaining(GATE));
});

test('keys are built in the order in which the scripts take them, with one hash tag', () => {
  const names = promised(source('reserve').header).keys.map((key) => key.split(' ')[1]);
  expect(gateKeys('s-1')).toEqual(names.map((name) => `{sale:s-1}:${name ?? ''}`));
});

const others = readdirSync(FOLDER)
  .map((file) => file.replace(/\.lua$/, ''))
  .filter((name) => name !== 'common' && !GATE.includes(name));

test.each(others)('%s, which is not of a sale: name, keys and arguments as its header tells', (name) => {
  const { header, body } = source(name);
  const { name: told, keys, fixed } = promised(header);
  const numbers = [...body.matchAll(/KEYS\[(\d+)\]/g)].map(([, n]) => Number(n));
  expect({ told, keys: keys.map((key) => parseInt(key)), fixed }).toEqual({
    ...{ told: name, keys: [...new Set(numbers)].sort(), fixed: used(name, body, COMMON).fixed },
  });
});

describe.each(GATE)('%s', (name) => {
  const { header, body } = source(name);
  const says = promised(header);
  const does = used(name, body, COMMON);

  test('its header names it, its keys, its arguments and its replies as they are', () => {
    expect(says).toEqual(does);
  });

  test('it takes keys by their names only, and glues none together', () => {
    expect(body).not.toMatch(/KEYS\[|\{sale|:stock|:holds|:buyers|:unqueued|:sale/);
  });

  test('it checks the types of all keys before it writes for the first time', () => {
    const writes = /redis\.call\('(?:SET|SADD|SREM|HSET|HDEL|HINCRBY|ZADD|ZREM|INCRBY|DECRBY|UNLINK)'|take_holds\(/;
    expect(body.search(writes)).toBeGreaterThan(-1);
    expect(body.search(/check_types\(\)/)).toBeGreaterThan(-1);
    expect(body.search(/check_types\(\)/)).toBeLessThan(body.search(writes));
  });
});

describe('the comparison itself notices', () => {
  const { header, body } = source('reserve');
  const { header: openHeader, body: openBody } = source('open');
  const differs = (name: string, head: string, code: string) => {
    expect(promised(head)).not.toEqual(used(name, code, COMMON));
  };
  test('another name', () => differs('reserve', header.replace('reserve:', 'reserves:'), body));
  test('keys in another order', () =>
    differs('reserve', header.replace('1 stock, 2 buyers', '1 buyers, 2 stock'), body));
  test('an argument that the header lacks', () => differs('open', openHeader.replace(', 11 currency', ''), openBody));
  test('an argument that the script lacks', () => differs('open', openHeader, openBody.replace('ARGV[9]', '0')));
  test('one more argument per buyer', () => differs('reserve', header.replace('user id', 'user id, shop'), body));
  test('another first buyer', () => differs('reserve', header, body.replace('unpack(ARGV, 4)', 'unpack(ARGV, 5)')));
  test('another stride', () => differs('open', openHeader, openBody.replace('#ARGV, 2', '#ARGV, 3')));
  test('a reply that the header lacks', () => differs('reserve', header.replace("'qty_over_limit' | ", ''), body));
  test('a reply that the script lacks', () =>
    differs('reserve', header, body.replaceAll("'qty_over_limit'", "'ended'")));
});
