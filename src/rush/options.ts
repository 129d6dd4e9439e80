/** The rush's options: one table, from which both the command line's help and the check of the values come. */
import { Option } from 'commander';
import { z } from 'zod';
import { SaleId } from '../domain/reservation.ts';
import { arrivals } from './schedule.ts';

/** Commander gives strings, a program gives numbers. */
const number = (schema: z.ZodNumber) =>
  z.preprocess((given) => (typeof given === 'string' && /^\d+(\.\d+)?$/.test(given) ? Number(given) : given), schema);
const whole = (min: number, max: number) => number(z.int().min(min).max(max));
const seconds = (min: number, max: number) => number(z.number().min(min).max(max));
const share = number(z.number().min(0).max(1));
const address = z.url({ protocol: /^https?$/ });

const field = <S extends z.ZodType>(flags: string, help: string, schema: S, fallback?: string | number) => ({
  flags,
  help,
  schema,
  fallback,
});

const fields = {
  url: field('--url <url>', 'address of the API', address, 'http://127.0.0.1:3000'),
  providerUrl: field('--provider-url <url>', 'address of the stand-in payment provider', address),
  sale: field('--sale <id>', 'rush at this sale (default: one is made for the run)', SaleId.optional()),
  buyers: field('--buyers <n>', 'how many buyers come', whole(1, 1_000_000), 20_000),
  units: field('--units <n>', 'units of the sale that is made', whole(1, 1_000_000), 100),
  quantity: field('--quantity <n>', 'each buyer asks for 1 to n units', whole(1, 1000), 1),
  holdSeconds: field('--hold-seconds <s>', 'hold time of the sale that is made, in seconds', whole(1, 604_800), 8),
  arrival: field('--arrival <curve>', `how buyers arrive: ${arrivals.join(', ')}`, z.enum(arrivals), 'burst'),
  over: field('--over <s>', 'first presses arrive within this many seconds', seconds(0, 3600), 2),
  connections: field('--connections <n>', 'keep-alive connections to the API', whole(1, 10_000), 200),
  timeout: field(
    '--timeout <s>',
    'a request without an answer is given up after this many seconds',
    seconds(1, 300),
    10,
  ),
  pressAgain: field('--press-again <share>', 'buyers (0 to 1) who press again before they know', share, 0.1),
  cut: field('--cut <share>', 'buyers (0 to 1) whose first reply is cut off, who then press again', share, 0.02),
  payers: field('--payers <share>', 'winners (0 to 1) who pay in time', share, 0.7),
  abandoners: field('--abandoners <share>', 'winners (0 to 1) who never pay', share, 0.2),
  latePayers: field('--late-payers <share>', 'winners (0 to 1) who pay after their hold expired', share, 0.1),
  comeBack: field('--come-back <share>', 'abandoners (0 to 1) who press again after it, and pay', share, 0.5),
  seed: field('--seed <n>', 'same seed, same rush', whole(0, 2_147_483_647), 1),
  settle: field(
    '--settle <s>',
    'longest wait, after the last hold has expired, until all is final',
    seconds(0, 3600),
    30,
  ),
  report: field('--report <file>', 'write the results there as JSON', z.string().min(1).optional()),
  html: field('--html <file>', 'write the results there as one HTML file, with charts', z.string().min(1).optional()),
};

type Fields = typeof fields;
export type RushSettings = { [Name in keyof Fields]: z.output<Fields[Name]['schema']> } & { audit: boolean };

/** For commander: add each to the command. */
export const rushOptions: Option[] = [
  ...Object.values(fields).map(({ flags, help, fallback }) => new Option(flags, help).default(fallback)),
  new Option('--no-audit', 'leave the audit out'),
];

/** The command line, or the environment, cannot be used: exit code 64. */
export class WrongUsage extends Error {}

/**
 * Checks the options, given by commander (strings) or by a program (numbers); what is missing takes its default.
 * @throws {WrongUsage} with one line per wrong option
 */
export function parseRushOptions(given: Record<string, unknown>, env: NodeJS.ProcessEnv): RushSettings {
  const defaults = Object.fromEntries(Object.entries(fields).map(([name, { fallback }]) => [name, fallback]));
  const providerUrl = env.PAYMENT_PROVIDER_URL || undefined;
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const shape = Object.fromEntries(Object.entries(fields).map(([name, { schema }]) => [name, schema]));
  const parsed = z
    .strictObject({ ...shape, audit: z.boolean() })
    .safeParse({ ...defaults, providerUrl, audit: true, ...set });
  if (!parsed.success) {
    const lines = parsed.error.issues.map(({ path, message }) => {
      const [name] = path;
      if (name === undefined) return message;
      const isMissing = name === 'providerUrl' && providerUrl === undefined && set.providerUrl === undefined;
      return `${flagOf(String(name))}: ${isMissing ? 'not set, and PAYMENT_PROVIDER_URL is not either' : message}`;
    });
    throw new WrongUsage(lines.join('\n'));
  }
  const settings = parsed.data as RushSettings;
  const sum = settings.payers + settings.abandoners + settings.latePayers;
  if (Math.abs(sum - 1) > 1e-9) {
    throw new WrongUsage(`--payers, --abandoners and --late-payers are shares of all winners: ${sum} should be 1`);
  }
  return settings;
}

const flagOf = (name: string) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
