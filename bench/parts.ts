/** The parts of the bench, in the order in which they run. */
import type { Part } from './bench.ts';
import { flatness } from './parts/flat.ts';
import { gateAlone } from './parts/gate.ts';
import { ladder } from './parts/ladder.ts';
import { ledgerAlone } from './parts/ledger.ts';
import { listeners } from './parts/listeners.ts';
import { refusal } from './parts/refusal.ts';
import { sideBySide } from './parts/rush.ts';
import { telemetry } from './parts/telemetry.ts';
import { times } from './parts/times.ts';

export const PARTS: Part[] = [
  { name: 'refusal', run: refusal },
  { name: 'rush', run: sideBySide },
  { name: 'ladder', run: ladder },
  { name: 'gate', run: gateAlone },
  { name: 'ledger', run: ledgerAlone },
  { name: 'times', run: times },
  { name: 'flat', run: flatness },
  { name: 'telemetry', run: telemetry },
  { name: 'listeners', run: listeners },
];
