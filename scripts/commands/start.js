// `npm start`: the whole system on one machine until Ctrl-C. Its data, tokens and sales are there again next time.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KEPT } from '../lib/folders.js';
import { firstFreePort, newSecrets, untilReady, withSystem } from './system.js';

/** @returns 0 after Ctrl-C, the exit code of `flashgate up` if that ended by itself */
export async function run(args, say) {
  let ready = false;
  const code = await withSystem({ name: 'start', keep: true, say }, async ({ env, flashgate }) => {
    const wanted = Number(process.env.PORT || 3000);
    const port = await firstFreePort(wanted);
    if (port !== wanted) say(`port ${wanted} is taken; using ${port}`);
    const providerPort = await firstFreePort(Number(process.env.PROVIDER_PORT || port + 1));
    // The shop that is tried out with it runs on the same machine.
    const forTrial = { LOG_LEVEL: 'warn', WEBHOOKS_ALLOW_PRIVATE: 'true', ...withShop(process.env) };
    const settings = { ...forTrial, ...keptSecrets(), ...process.env, ...env };
    for (const name of ['SERVICE_TOKEN', 'ADMIN_TOKEN', 'WEBHOOK_SECRET']) say(`${name}=${settings[name]}`);
    const up = flashgate(['up', ...args], {
      env: { ...settings, PORT: String(port), PROVIDER_PORT: String(providerPort) },
    });
    const host = process.env.HOST || '127.0.0.1';
    await untilReady(up, `http://${['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host}:${port}`);
    ready = true;
    return await up.done;
  });
  return ready && code > 128 ? 0 : code;
}

/** The sample shop vouches for its guests, which nobody can where buyers have tokens of their own. */
function withShop({ AUTH_MODE }) {
  return AUTH_MODE === 'jwt' ? {} : { SHOP_SAMPLE: 'true' };
}

/** The tokens of the first start, so that a shop that was connected to it stays connected. */
function keptSecrets() {
  const path = join(KEPT, 'secrets.json');
  const kept = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
  const secrets = { ...newSecrets(), ...kept }; // a new version may need one more than the first start made
  if (Object.keys(secrets).length === Object.keys(kept).length) return kept;
  mkdirSync(KEPT, { recursive: true });
  writeFileSync(path, JSON.stringify(secrets, null, 2), { mode: 0o600 });
  return secrets;
}
