/** The logger. Whatever is logged, no secret leaves the process: neither in a field, nor in an error's own words. */
import { pino, type DestinationStream, type Logger } from 'pino';
import type { Config } from './config.ts';
import { traceFields } from './span.ts';

const NAMES = ['authorization', 'cookie', 'set-cookie', 'webhook-signature', 'stripe-signature', 'password'];
/** Fields by name, wherever they may be; and what Redis was asked (AUTH has the password), which its errors carry. */
const HIDDEN_FIELDS = [
  ...NAMES.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.headers["${name}"]`]),
  ...['err.command.args', 'err.cause.command.args'],
];
const HIDDEN = '[hidden]';

/** The password of `scheme://user:password@host`, also when the user is left out. */
const PASSWORD_IN_URL = /(\w:\/\/[^\s:@/"]*:)[^\s@/"]+@/g;

/** Words shorter than this may be a part of something else: the password `flashgate`, say. */
const SHORTEST_SECRET = 12;

const STANDARD_OUTPUT = 1;
/** Characters of lines that wait to be written; what comes then is lost. */
const MOST_WAITING = 2 ** 20;

/**
 * Standard output that nobody waits for. While it cannot be written (a full disk, a closed terminal) lines wait for the
 * next one that can. Left alone, pino ends the process at the first such line, but not before it has written all: for
 * ever, and nobody is served meanwhile.
 */
function standardOutput(): DestinationStream {
  const output = pino.destination({ dest: STANDARD_OUTPUT, sync: false, maxLength: MOST_WAITING });
  let failed = false;
  output.on('error', () => (failed = true));
  output.on('write', () => (failed = false));
  const flush = output.flushSync.bind(output);
  output.flushSync = () => {
    if (!failed) flush();
  };
  return output;
}

/** @param config with everything secret that the process was given */
export function createLogger(
  config: Pick<Config, 'LOG_LEVEL'> & Partial<Config>,
  destination = standardOutput(),
): Logger {
  const hide = hider(secretsOf(config));
  return pino(
    {
      name: 'flashgate',
      level: config.LOG_LEVEL,
      redact: { paths: HIDDEN_FIELDS, censor: HIDDEN },
      mixin: traceFields,
      // The whole line as text: an error's message, its stack and its cause are covered as well.
      hooks: { streamWrite: hide },
    },
    destination,
  );
}

/** Told by the settings' names, so that a new one is not forgotten here. */
const SECRET_NAME = /TOKEN|SECRET|PASSWORD/;

function secretsOf(config: Partial<Config>): string[] {
  const secrets = Object.entries(config).flatMap(([name, value]) => {
    const texts = [value].flat().filter((text) => typeof text === 'string');
    if (SECRET_NAME.test(name)) return texts;
    if (!name.endsWith('_URL')) return [];
    const urls = texts.flatMap((text) => text.split(/\s+/)).filter((text) => URL.canParse(text));
    return urls.map((url) => new URL(url).password).flatMap((password) => [password, decodeURIComponent(password)]);
  });
  return secrets.filter((secret) => secret.length >= SHORTEST_SECRET);
}

/** @returns what takes these secrets, and passwords in URLs, out of a line of JSON */
function hider(secrets: string[]): (line: string) => string {
  const written = secrets.map((secret) => JSON.stringify(secret).slice(1, -1));
  return (line) => {
    const hidden = written.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), line);
    return hidden.replace(PASSWORD_IN_URL, `$1${HIDDEN}@`);
  };
}
