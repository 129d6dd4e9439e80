/**
 * The life of a sale: created, changed, paused, resumed, ended, closed. The ledger has the settings, the gate applies
 * them to new holds. Grow: ledger first, then gate. Shrink: gate first, so that nobody wins what is being taken away.
 */
import { crashPoint } from '../crash.ts';
import { fenced, StaleToken } from '../domain/outcomes.ts';
import type { Sale, SaleSettings } from '../domain/sale.ts';
import { transaction } from '../ledger/db.ts';
import { fence } from '../ledger/fences.ts';
import { COMMAND, journalled, writeJournal, type Actor, type JournalAction } from '../ledger/journal.ts';
import { changeSale, createSale, getSale, getSaleLocked, ledgerFigures } from '../ledger/sales.ts';
import { openGate, tokenFor } from './open.ts';
import type { Stores } from './stores.ts';

type Both = Pick<Stores, 'pool' | 'gate'>;

/** Why a sale cannot be changed like that. `code` is the problem's name in the HTTP interface. */
export class SaleConflict extends Error {
  readonly code: 'sale_not_found' | 'total_too_low' | 'currency_fixed' | 'ended' | 'not_settled' | 'gate_not_loaded';

  constructor(code: SaleConflict['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** Creates a sale, or changes it to these whole settings; either way its gate is open afterwards. */
export async function putSale(
  stores: Both,
  saleId: string,
  settings: SaleSettings,
  by: Actor = COMMAND,
): Promise<{ sale: Sale; created: boolean }> {
  const created = await transaction(stores.pool, async (client) => {
    const isNew = await createSale(client, saleId, settings);
    if (isNew) await writeJournal(client, by, { action: 'create', saleId, before: null, after: settings });
    return isNew;
  });
  const wanted = {
    ...{ name: settings.name, total: settings.total, holdSeconds: settings.holdSeconds },
    ...{ startsAt: Date.parse(settings.startsAt), endsAt: Date.parse(settings.endsAt) },
    maxPerReservation: settings.maxPerReservation,
    ...{ amount: settings.price.amount, currency: settings.price.currency },
  };
  const sale = created
    ? await mustGet(stores, saleId)
    : await alter(stores, saleId, { by, action: 'change' }, (now) => ({ ...now, ...wanted }));
  // Not opened yet: new, or its creator died before this step.
  if (sale.openedAt === null) await openNew(stores, saleId);
  return { sale: await mustGet(stores, saleId), created };
}

/** @throws {SaleConflict} when somebody else, with a newer token, is opening it: whoever asks again finds it open */
async function openNew(stores: Both, saleId: string): Promise<void> {
  try {
    await openGate(stores, saleId, await tokenFor(stores.pool, saleId));
  } catch (error) {
    if (!(error instanceof StaleToken)) throw error;
    throw new SaleConflict('gate_not_loaded', `somebody else is opening sale ${saleId} at this moment: ask again`);
  }
}

const ACTIONS = { paused: 'pause', open: 'resume', ended: 'end' } as const;

/** Pauses, resumes or ends a sale. What has ended stays ended. */
export function setState(stores: Both, saleId: string, state: keyof typeof ACTIONS, by = COMMAND): Promise<Sale> {
  return alter(stores, saleId, { by, action: ACTIONS[state] }, (now) => {
    if (now.state === 'closed' || (now.state === 'ended' && state !== 'ended')) {
      throw new SaleConflict('ended', `sale ${saleId} is ${now.state}`);
    }
    return { ...now, state };
  });
}

/** Changes the total alone. @throws {SaleConflict} when more than that is held or sold */
export function resizeSale(stores: Both, saleId: string, total: number, by = COMMAND): Promise<Sale> {
  return alter(stores, saleId, { by, action: 'resize' }, (now) => ({ ...now, total }));
}

/**
 * Closes an ended sale in which nothing is live but what is paid, removes its gate and withdraws what was not sold: its
 * total is from then on what was sold. Repeatable.
 */
export async function closeSale(stores: Both, saleId: string, by = COMMAND): Promise<Sale> {
  const sale = await mustGet(stores, saleId);
  if (sale.state !== 'closed') {
    if (sale.state !== 'ended') throw new SaleConflict('not_settled', `sale ${saleId} is ${sale.state}: end it first`);
    await transaction(stores.pool, async (client) => {
      const locked = await getSaleLocked(client, saleId);
      if (locked?.state === 'closed') return; // by somebody else, a moment ago
      const ledger = await ledgerFigures(client, saleId);
      const gate = await stores.gate.figures(saleId);
      if (!locked || !ledger || !gate)
        throw new SaleConflict('gate_not_loaded', `the gate of sale ${saleId} is not loaded`);
      const paid = ledger.byStatus.PAID;
      if (ledger.sold !== paid || gate.held !== paid || gate.unqueued > 0) {
        throw new SaleConflict(
          'not_settled',
          `sale ${saleId}: ${ledger.sold} units are live in the ledger, ${gate.held} held at the gate, only ${paid} paid: wait until the holds have ended`,
        );
      }
      // The gate first: if we die before the commit, the keeper rebuilds it, and the sale can be closed again.
      await stores.gate.remove(saleId);
      // What was not sold is withdrawn: a message that comes after all, of a hold that the gate forgot, finds no room,
      // instead of an order that no keeper looks after.
      const closed: Sale = { ...locked, state: 'closed', total: paid, settings: locked.settings + 1 };
      await changeSale(client, closed);
      await writeJournal(client, by, change('close', locked, closed));
    });
  }
  return mustGet(stores, saleId);
}

async function mustGet({ pool }: Pick<Stores, 'pool'>, saleId: string): Promise<Sale> {
  const sale = await getSale(pool, saleId);
  if (!sale) throw new SaleConflict('sale_not_found', `there is no sale ${saleId}`);
  return sale;
}

const change = (action: JournalAction, before: Sale, after: Sale) => ({
  ...{ action, saleId: after.saleId, before: journalled(before), after: journalled(after) },
});

async function alter(
  stores: Both,
  saleId: string,
  { by, action }: { by: Actor; action: JournalAction },
  changed: (now: Sale) => Sale,
): Promise<Sale> {
  const { sale, opened } = await transaction(stores.pool, async (client) => {
    const now = await getSaleLocked(client, saleId);
    if (!now) throw new SaleConflict('sale_not_found', `there is no sale ${saleId}`);
    if (now.state === 'closed') throw new SaleConflict('ended', `sale ${saleId} is closed`);
    const wanted = changed(now);
    const ledger = await ledgerFigures(client, saleId);
    if (wanted.total < (ledger?.sold ?? 0)) {
      throw new SaleConflict('total_too_low', `${ledger?.sold ?? 0} units of sale ${saleId} are sold or held`);
    }
    // A shrink that reached the gate but not the ledger leaves the gate a version ahead.
    const gate = await stores.gate.figures(saleId);
    // Whoever opened it may have died before the ledger heard of it.
    const opened = now.openedAt !== null || gate !== undefined;
    const next = { ...wanted, settings: Math.max(now.settings, gate?.settings ?? 0) + 1 };
    const held = Object.values(ledger?.byStatus ?? {}).some((units) => units > 0) || (gate?.held ?? 0) > 0;
    if (next.currency !== now.currency && held) {
      throw new SaleConflict('currency_fixed', `sale ${saleId} has holds in ${now.currency}`);
    }
    if (next.total < now.total && opened) {
      await configure(stores, next, 'ask');
      crashPoint('settings_at_gate');
    }
    await changeSale(client, next);
    await writeJournal(client, by, change(action, now, next));
    return { sale: next, opened };
  });
  crashPoint('settings_in_ledger');
  if (opened) await configure(stores, sale, 'decided');
  return sale;
}

/**
 * Brings gate and ledger to the same settings, for the keeper. The gate lacks the ledger's newest: they are applied. The
 * gate is ahead, since a change reached it and not the ledger: the ledger's are made the newest, and applied.
 * @returns whether there was anything to do
 */
export async function applySettings(stores: Both, saleId: string, token = ''): Promise<boolean> {
  const sale = await transaction(stores.pool, async (client) => {
    const now = await getSaleLocked(client, saleId);
    await fence(client, saleId, token);
    const gate = await stores.gate.figures(saleId);
    if (!now || !gate || gate.settings === now.settings) return undefined;
    if (gate.settings < now.settings) return now;
    const next = { ...now, settings: gate.settings + 1 };
    await changeSale(client, next);
    return next;
  });
  if (!sale) return false;
  await configure(stores, sale, 'decided', token);
  return true;
}

/**
 * Has the gate apply the ledger's settings even where it says that it has this version: a change that reached the gate
 * and never the ledger, whose process died, may have left another total there under the same number.
 * @returns whether the gate has them now; not when it is not loaded, or is ahead: {@link applySettings} comes first
 */
export async function enforceSettings({ pool, gate }: Both, saleId: string, token = ''): Promise<boolean> {
  const sale = await getSale(pool, saleId);
  if (!sale) return false;
  const { answer } = await gate.configure(sale, 'decided', token);
  return fenced(answer, saleId) === 'applied';
}

/** Applies settings at the gate. 'older' is no failure: somebody has changed them again since. */
async function configure({ gate }: Both, sale: Sale, mode: 'ask' | 'decided', token = ''): Promise<void> {
  const { answer, figure } = await gate.configure(sale, mode, token);
  switch (fenced(answer, sale.saleId)) {
    case 'applied':
    case 'older':
      return;
    case 'total_too_low':
      throw new SaleConflict(
        'total_too_low',
        `${figure ?? 0} units of sale ${sale.saleId} are held or forfeited at the gate`,
      );
    case 'currency_fixed':
      throw new SaleConflict('currency_fixed', `sale ${sale.saleId} has holds in another currency`);
    case 'not_loaded':
    case 'loading':
      throw new SaleConflict(
        'gate_not_loaded',
        `the gate of sale ${sale.saleId} is not loaded: it is rebuilt with the ledger's settings`,
      );
  }
}
