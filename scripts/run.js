// Every npm script starts here: `node scripts/run.js demo|start|test|check|bench|chaos [arguments]`.
// Any Node.js from 20 on can run this file. It sees to the dependencies, among them the pinned Node.js, and goes on
// under that one. Node.js built-ins only, until then.
import { realpathSync } from 'node:fs';
import { ensureDependencies } from './lib/dependencies.js';
import { RUNTIME } from './lib/folders.js';
import { SetupError, runInForeground } from './lib/processes.js';

const COMMANDS = ['demo', 'start', 'test', 'check', 'bench', 'chaos'];
const say = (line) => console.log(line);

async function main([command, ...rest]) {
  if (!COMMANDS.includes(command)) {
    console.error(`usage: node scripts/run.js ${COMMANDS.join('|')} [arguments]`);
    return 64;
  }
  await ensureDependencies(say);
  if (realpathSync(process.execPath) !== realpathSync(RUNTIME))
    return await runInForeground(RUNTIME, process.argv.slice(1));
  const args = rest[0] === '--' ? rest.slice(1) : rest;
  return await (await import(`./commands/${command}.js`)).run(args, say);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof SetupError ? `flashgate: ${error.message}` : error);
  process.exitCode = 1;
}
