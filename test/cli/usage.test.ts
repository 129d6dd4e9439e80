/** The command line for people: help for every command, and 64 for what it does not understand. */
import { expect, test, vi } from 'vitest';
import { flashgate } from '../process/program.ts';

// A process takes its time to start when the machine is busy.
vi.setConfig({ testTimeout: 60_000 });

const COMMANDS = [
  ...['serve', 'work', 'keep', 'up', 'migrate', 'sweep', 'reconcile', 'rebuild', 'audit', 'rush', 'sale'],
  ...['create', 'list', 'show', 'pause', 'resume', 'resize', 'end'].map((action) => `sale ${action}`),
];

test('--help lists every command', async () => {
  const { code, stdout, stderr } = await flashgate(['--help']);
  expect([code, stderr]).toEqual([0, '']);
  for (const command of COMMANDS.filter((name) => !name.includes(' '))) {
    expect(stdout).toMatch(new RegExp(`^  ${command}\\b`, 'm'));
  }
  expect(stdout).toContain('64 wrong usage');
});

test('--help of every command, without a single setting', async () => {
  const answers = await Promise.all(
    COMMANDS.map(async (command) => ({ command, ...(await flashgate([...command.split(' '), '--help'])) })),
  );
  for (const { command, code, stdout, stderr } of answers) {
    expect([code, stderr], command).toEqual([0, '']);
    expect(stdout).toMatch(new RegExp(`^Usage: flashgate ${command}`));
  }
});

test.each([
  ['nothing', ''],
  ['an unknown command', 'serv'],
  ['an unknown option', 'serve --port 3000'],
  ['an argument too many', 'serve now'],
  ['rebuild without its sale', 'rebuild'],
  ['rebuild with an empty option', 'rebuild --sale'],
  ['sweep without --once', 'sweep'],
  ['sale without what to do', 'sale'],
  ['an unknown thing to do with a sale', 'sale delete x'],
  ['sale show without which', 'sale show'],
  ['sale create without what it needs', 'sale create x --total 10'],
  ['a total that is no number', 'sale resize x --total many'],
  ['a total in fractions', 'sale resize x --total 1.5'],
  ['a total below none', 'sale resize x --total -1'],
  ['an unknown option of audit', 'audit --sales x'],
])('%s: exit 64 with a word about it', async (_, line) => {
  const { code, stdout, stderr } = await flashgate(line.split(' ').filter((word) => word !== ''));
  expect(code).toBe(64);
  expect(stdout).toBe('');
  expect(stderr).toMatch(/^(error: |Usage: )/);
  expect(stderr).not.toMatch(/^\s+at /m);
});
