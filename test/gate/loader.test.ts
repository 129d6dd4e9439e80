/** The scripts' loader: loud about a folder that is not as it should be, silent about a Redis that forgot. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadScripts, script } from '../../src/gate/scripts.ts';
import { privateRedis } from '../support/servers.ts';
import { Probe } from './probe.ts';

describe('loading', () => {
  let folder: string;
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'flashgate-lua-'))));
  afterEach(() => rmSync(folder, { recursive: true }));
  const put = (file: string, text: string) => writeFileSync(join(folder, file), text);

  test('a folder that does not exist', () => {
    expect(() => loadScripts(join(folder, 'nowhere'))).toThrow(/ENOENT.*nowhere/);
  });
  test('an empty folder', () => {
    expect(() => loadScripts(folder)).toThrow(folder);
  });
  test('a folder with common.lua alone', () => {
    put('common.lua', 'local a = 1');
    expect(() => loadScripts(folder)).toThrow(`${folder} has no scripts`);
  });
  test('a folder without common.lua', () => {
    put('release.lua', 'return 1');
    expect(() => loadScripts(folder)).toThrow(`${folder} has no common.lua`);
  });
  test.each(['common.lua', 'release.lua'])('an empty %s', (file) => {
    put('common.lua', 'local a = 1');
    put('release.lua', 'return a');
    put(file, ' \n');
    expect(() => loadScripts(folder)).toThrow(`${file} is empty`);
  });
  test('a good folder: every script has common.lua before it, other files are not scripts', () => {
    put('common.lua', 'local a = 1');
    put('release.lua', 'return a');
    put('notes.txt', 'not a script');
    const scripts = loadScripts(folder);
    expect([...scripts.keys()]).toEqual(['release']);
    expect(scripts.get('release')?.source).toBe('local a = 1\nreturn a');
  });
  test('a script that is not there is named', () => {
    expect(() => script('nothing')).toThrow('lua/ has no script nothing');
  });
});

// On a Redis of its own: SCRIPT FLUSH is for the whole server.
test('SCRIPT FLUSH between calls is not noticed, and costs one resend', async () => {
  const redis = new Redis((await privateRedis()).url);
  const probe = await new Probe(redis).open();
  const known = async (name: string) => ((await redis.script('EXISTS', script(name).sha1)) as number[])[0];
  const hold = await probe.win('ann');
  expect(await known('reserve')).toBe(1);
  for (const [name, ...args] of [
    ['reserve', 'batch', '00000000-0000-4000-8000-000000000001', 1, 'bob'],
    ['queued', 'ann', hold.slice(0, 36)],
    ['release', '', 'ann', hold.slice(0, 36)],
  ] as const) {
    await redis.script('FLUSH');
    expect(await known(name)).toBe(0);
    await probe.call(name, ...args);
    expect(await known(name)).toBe(1);
  }
  expect([...(await probe.read()).holds.keys()]).toEqual(['bob']);
  redis.disconnect();
});
