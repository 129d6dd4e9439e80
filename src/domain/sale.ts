/** A sale: one product, its settings, and the phase in which it is. Pure: no I/O. */
import { z } from 'zod';
import { Currency } from './reservation.ts';

const Instant = z.iso.datetime({ offset: true });

/** The whole settings of a sale, as an admin gives them. Times RFC 3339, price in minor units of its currency. */
export const SaleSettings = z
  .strictObject({
    name: z.string().min(1).max(200),
    total: z.int().min(0).max(1_000_000_000),
    startsAt: Instant,
    endsAt: Instant,
    holdSeconds: z.int().min(1).max(604_800),
    maxPerReservation: z.int().min(1).max(1000),
    price: z.strictObject({ amount: z.int().min(0).max(1_000_000_000_000), currency: Currency }),
  })
  .meta({ id: 'SaleSettings' });
export type SaleSettings = z.infer<typeof SaleSettings>;

/**
 * RFC 3339 has no year after 9999, but an offset can lead beyond it, and so can fractions of its last second, which the
 * ledger rounds up.
 */
const LAST_SECOND = Date.UTC(9999, 11, 31, 23, 59, 59);

/** @returns what is wrong with the two times together, or with what they are in UTC; undefined when nothing is */
export function wrongTimes({ startsAt, endsAt }: Pick<SaleSettings, 'startsAt' | 'endsAt'>): string | undefined {
  if (Date.parse(endsAt) <= Date.parse(startsAt)) return `endsAt (${endsAt}) must be after startsAt (${startsAt})`;
  if (Date.parse(endsAt) >= LAST_SECOND) return `endsAt (${endsAt}) must be before the year 10000 in UTC`;
  return undefined;
}

/** What an admin made of the sale. When it opens and ends by itself is a matter of the clock: see {@link phase}. */
export const SaleState = z.enum(['open', 'paused', 'ended', 'closed']);
export type SaleState = z.infer<typeof SaleState>;

/** Times in epoch milliseconds; `settings` is the version of the settings. */
export type Sale = {
  saleId: string;
  name: string;
  state: SaleState;
  startsAt: number;
  endsAt: number;
  total: number;
  holdSeconds: number;
  maxPerReservation: number;
  amount: number;
  currency: string;
  settings: number;
  openedAt: number | null;
};

export const SalePhase = z.enum(['scheduled', 'open', 'paused', 'ended', 'closed']);
export type SalePhase = z.infer<typeof SalePhase>;

/** The phase at a moment of the gate's clock (epoch milliseconds). */
export function phase(sale: Pick<Sale, 'state' | 'startsAt' | 'endsAt'>, now: number): SalePhase {
  if (sale.state !== 'open' && sale.state !== 'paused') return sale.state;
  if (now >= sale.endsAt) return 'ended';
  if (sale.state === 'paused') return 'paused';
  return now < sale.startsAt ? 'scheduled' : 'open';
}
