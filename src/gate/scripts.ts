/**
 * Loads the scripts of `lua/` and runs them. Raw EVAL is nowhere else.
 *
 * A script is sent by its SHA-1 and as a whole when Redis does not know it (after a restart or SCRIPT FLUSH, or on a
 * cluster's node that serves the sale only since now).
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from './client.ts';

const FOLDER = join(import.meta.dirname, '../../lua');
/** Prepended to every script; not a script itself. */
const COMMON = 'common.lua';

export class Script {
  readonly name: string;
  readonly source: string;
  readonly sha1: string;

  constructor(name: string, source: string) {
    this.name = name;
    this.source = source;
    this.sha1 = createHash('sha1').update(source).digest('hex');
  }

  /** @returns the script's reply as Redis gives it; its wrapper in gate.ts knows the shape */
  async run(redis: Client, keys: readonly string[], args: (string | number)[]): Promise<unknown> {
    try {
      return await redis.evalsha(this.sha1, keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return redis.eval(this.source, keys.length, ...keys, ...args);
    }
  }
}

/**
 * Reads a folder of scripts.
 * @throws {Error} when the folder is missing, has no scripts, lacks common.lua, or a script is empty
 */
export function loadScripts(folder: string = FOLDER): Map<string, Script> {
  const files = readdirSync(folder).filter((file) => file.endsWith('.lua'));
  const read = (file: string) => {
    const text = readFileSync(join(folder, file), 'utf8');
    if (text.trim() === '') throw new Error(`${join(folder, file)} is empty`);
    return text;
  };
  if (!files.includes(COMMON)) throw new Error(`${folder} has no ${COMMON}`);
  const common = read(COMMON);
  const scripts = files
    .filter((file) => file !== COMMON)
    .map((file) => new Script(file.slice(0, -'.lua'.length), `${common}\n${read(file)}`));
  if (scripts.length === 0) throw new Error(`${folder} has no scripts`);
  return new Map(scripts.map((script) => [script.name, script]));
}

const scripts = loadScripts();

/** @throws {Error} when `lua/` has no script of that name */
export function script(name: string): Script {
  const found = scripts.get(name);
  if (!found) throw new Error(`lua/ has no script ${name}`);
  return found;
}
