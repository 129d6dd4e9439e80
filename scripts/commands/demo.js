// `npm run demo [-- options of flashgate rush]`: the whole system, a sale, a crowd, the audit; then all of it is gone.
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { STATE } from '../lib/folders.js';
import { SetupError } from '../lib/processes.js';
import { freePorts, isFree } from '../servers/server.js';
import { answers, newSecrets, untilReady, withSystem } from './system.js';

const PORT_TRIES = 5;
/** Stays when all else of the run is gone, until the next demo. */
const REPORT = join(STATE, 'rush-report.html');

/** Nobody waits for minutes in a demo: what the keeper repairs after a grace, it repairs soon. In milliseconds. */
const SHORT_GRACES = { KEEPER_INTERVAL_MS: '250', UNQUEUED_GRACE_MS: '3000', PARKED_GRACE_MS: '10000' };

/** @returns the exit code of the rush: 0 only if the audit holds */
export function run(args, say) {
  return withSystem({ name: 'demo', say }, async ({ env, folder, flashgate, isEnding }) => {
    const log = join(folder, 'up.log');
    const settings = { LOG_LEVEL: 'warn', ...process.env, ...env, ...SHORT_GRACES, ...newSecrets() };
    const { up, url, providerUrl } = await startUp(flashgate, settings, log);
    say(`flashgate  ${url}\n`);
    const options = ['--url', url, '--provider-url', providerUrl, '--html', REPORT]; // what is asked for comes last, and wins
    const rush = flashgate(['rush', ...options, ...args], { env: settings });
    const failed = up.done.then((code) => {
      throw new SetupError(`the application ended in the middle of the rush (exit code ${code})\n${tail(log)}`);
    });
    const code = await Promise.race([rush.done, failed]);
    if (code !== 0 && !isEnding()) {
      // Its log is complete only when it has ended. One that no longer answers is about to, and will say why.
      if (await answers(`${url}/livez`)) up.kill('SIGTERM');
      await up.done;
      say(`\nThe end of the application's log:\n${tail(log)}`);
    }
    return code;
  });
}

/** Starts `flashgate up` on free ports; on others if somebody else was faster. */
async function startUp(flashgate, settings, log) {
  for (let attempt = 1; ; attempt++) {
    const [port, providerPort] = await freePorts(2);
    const [url, providerUrl] = [port, providerPort].map((number) => `http://127.0.0.1:${number}`);
    const file = openSync(log, 'w');
    const env = { ...settings, HOST: '127.0.0.1', PORT: String(port), PROVIDER_PORT: String(providerPort) };
    const up = flashgate(['up'], { env, stdio: ['ignore', file, file] });
    closeSync(file);
    try {
      await untilReady(up, url);
      return { up, url, providerUrl };
    } catch (error) {
      const free = up.exitCode === null || ((await isFree(port)) && (await isFree(providerPort)));
      if (free || attempt === PORT_TRIES) throw new SetupError(`${error.message}\n${tail(log)}`);
    }
  }
}

function tail(path) {
  return readFileSync(path, 'utf8').trim().split('\n').slice(-20).join('\n') || '(it is empty)';
}
