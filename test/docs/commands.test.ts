/** Each command line of flashgate that a document shows can be parsed: its command and its options are in the help. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { docs, ROOT } from './documents.ts';

type Help = { commands: string[]; options: string[] };
const helps = new Map<string, Help>();

/** What a command's own help lists. @throws {Error} when there is no such command */
function helpOf(command: string[]): Help {
  const key = command.join(' ');
  const known = helps.get(key);
  if (known) return known;
  const { stdout, stderr, status } = spawnSync(process.execPath, [join(ROOT, 'src/main.ts'), ...command, '--help'], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`flashgate ${key} --help: ${stderr}`);
  const listed = (title: string, pattern: RegExp) => {
    const section = new RegExp(`^${title}:\\n([\\s\\S]*?)(?:\\n\\n|$(?![\\s\\S]))`, 'm').exec(stdout)?.[1] ?? '';
    return [...section.matchAll(pattern)].map(([, name = '']) => name);
  };
  const help = {
    commands: listed('Commands', /^ {2}(\S+)/gm),
    options: ['Options', 'Global Options'].flatMap((title) => listed(title, /(--[\w-]+)/g)),
  };
  helps.set(key, help);
  return help;
}

/** @returns what is wrong with a command line, without `flashgate` itself; undefined when nothing is */
function wrongWith(line: string): string | undefined {
  const words = line.split(/\s+/);
  const command: string[] = [];
  while (helpOf(command).commands.includes(words[0] ?? '')) command.push(words.shift() ?? '');
  if (command.length === 0) return `there is no command ${words[0] ?? ''}`;
  const { commands, options } = helpOf(command);
  if (commands.length > 0 && words.length > 0) return `${command.join(' ')} has no command ${words[0] ?? ''}`;
  const unknown = words.map((word) => /^--[\w-]+/.exec(word)?.[0]).filter((name) => name && !options.includes(name));
  return unknown.length > 0 ? `${command.join(' ')} has no option ${unknown.join(', ')}` : undefined;
}

describe.each(docs)('$path', ({ blocks, spans }) => {
  test('its command lines parse', { timeout: 120_000 }, () => {
    const prefixed = [...spans, ...blocks.flatMap(({ lines }) => lines)].flatMap((code) => {
      // Two spaces set a command apart from what is said about it.
      const [, line] = /^\s*(?:\.\/bin\/)?flashgate ([a-z].*?)(?: {2}.*)?$/.exec(code) ?? [];
      return line === undefined ? [] : [line];
    });
    const first = helpOf([]).commands;
    const bare = spans.filter((span) => / --|^sale \w/.test(span) && first.includes(span.split(' ')[0] ?? ''));
    const wrong = [...prefixed, ...bare].map((line) => [line, wrongWith(line)]).filter(([, why]) => why);
    expect(wrong).toEqual([]);
  });
});

test('a command or an option that does not exist is found', () => {
  expect(wrongWith('fly')).toBe('there is no command fly');
  expect(wrongWith('sale fly x')).toBe('sale has no command fly');
  expect(wrongWith('sweep --twice')).toBe('sweep has no option --twice');
  expect(wrongWith('rush --buyers 20')).toBeUndefined();
});
