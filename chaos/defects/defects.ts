/** Defects to be put into a copy of the product: each leaves out a rule of the design that looks like a nicety. */
import type { PreferenceName } from '../preferences.ts';

export type Defect = {
  name: string;
  says: string;
  file: string;
  /** Text that must be in the file exactly once, and what stands there instead. */
  original: string;
  replaced: string;
  preference: PreferenceName;
  minutes: number;
  /** Within how many seeds it must be found. */
  seeds: number;
  /** Names of checks that are meant to find it; broken by anything else does not count. */
  foundBy: string[];
};

export const DEFECTS: Defect[] = [
  {
    name: 'release-by-buyer',
    says: 'a release takes whatever the buyer holds, also what was won after the hold that is given back',
    file: 'lua/common.lua',
    original: 'if hold and not seen[buyer] and hold_id(hold) == id and',
    replaced: 'if hold and not seen[buyer] and',
    preference: 'late-releases',
    minutes: 0.5,
    seeds: 2,
    foundBy: ['no_winner_refused', 'holder_not_turned_away', 'told_has_order'],
  },
  {
    name: 'acknowledge-early',
    says: 'a message is taken off the queue before its order is committed',
    file: 'src/worker/worker.ts',
    original: 'messages.map((message) => processMessage(message, record))',
    replaced: `messages.map((message) => {
      processMessage(message, record).catch((error: unknown) => log.error({ err: error }, 'not recorded'));
      return Promise.resolve();
    })`,
    preference: 'lost-messages',
    minutes: 0.7,
    seeds: 3,
    foundBy: ['told_has_order'],
  },
  {
    name: 'adopt-unchecked',
    says: 'an order that has ended meanwhile is adopted at the gate all the same',
    file: 'src/keeper/reconcile.ts',
    original: 'const live = await lockLive(client, ids);',
    replaced: 'const live = ids.length > 0 ? missing : await lockLive(client, ids);',
    preference: 'slow-keepers',
    minutes: 0.7,
    seeds: 3,
    foundBy: ['given_back_stays'],
  },
];
