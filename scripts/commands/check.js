// `npm run check`: types (the pages' own too), lint and format. All are run and shown, whatever the first one says.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { ROOT, RUNTIME } from '../lib/folders.js';
import { exitCode } from '../lib/processes.js';

const TOOLS = [
  ['types', 'typescript/bin/tsc', '-p', '.'],
  ['pages', 'typescript/bin/tsc', '-p', 'src/http/shop/assets'],
  ['lint', 'eslint/bin/eslint.js', '.'],
  ['format', 'prettier/bin/prettier.cjs', '--check', '--log-level=warn', '.'],
];

/** @returns the exit code: 0 if all are content */
export async function run(_args, say) {
  const results = await Promise.all(TOOLS.map(check));
  for (const { name, code, output, seconds } of results) {
    if (output) say(`${output}\n`);
    say(`${name.padEnd(8)}${code === 0 ? 'ok' : 'FAILED'}  ${seconds} s`);
  }
  return results.every(({ code }) => code === 0) ? 0 : 1;
}

async function check([name, program, ...args]) {
  const started = performance.now();
  const child = spawn(RUNTIME, [join(ROOT, 'node_modules', program), ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const code = await exitCode(child);
  return { name, code, output: output.trimEnd(), seconds: ((performance.now() - started) / 1000).toFixed(1) };
}
