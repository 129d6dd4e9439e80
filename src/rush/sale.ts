/** The sale that is rushed at: one made for the run, or one that is there. */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { told, type Flashgate } from '../client/client.ts';
import { readSale } from './ledger-read.ts';
import type { RushSettings } from './options.ts';

const SaleState = z.object({
  saleId: z.string(),
  state: z.string(),
  total: z.int(),
  holdSeconds: z.int(),
  maxPerReservation: z.int(),
});
export type SaleState = z.infer<typeof SaleState>;

const OPENING_MS = 15_000;
const PRICE = { amount: 1999, currency: 'EUR' };

/**
 * Makes a sale that is open for an hour (unless one is named), and waits until the API serves it as open.
 * @throws {Error} with what the API said last, when it is not open in time
 */
export async function prepareSale(settings: RushSettings, admin: Flashgate, api: Flashgate): Promise<SaleState> {
  const saleId = settings.sale ?? `rush-${Date.now().toString(36)}`;
  if (settings.sale === undefined) {
    const body = {
      name: `Rush: ${settings.units} units, ${settings.buyers} buyers`,
      total: settings.units,
      startsAt: new Date(Date.now() - 60_000).toISOString(),
      endsAt: new Date(Date.now() + 3_600_000).toISOString(),
      holdSeconds: settings.holdSeconds,
      maxPerReservation: settings.quantity,
      price: PRICE,
    };
    await told(admin.PUT('/admin/sales/{saleId}', { params: { path: { saleId } }, body }));
  }
  const deadline = Date.now() + OPENING_MS;
  let seen: unknown;
  do {
    const { data, error } = await api.GET('/sales/{saleId}', { params: { path: { saleId } } });
    seen = data ?? error;
    const sale = SaleState.safeParse(data);
    if (sale.success && sale.data.state === 'open' && (await readSale(admin, saleId)).gate !== null) {
      return sale.data;
    }
    await sleep(200);
  } while (Date.now() < deadline);
  throw new Error(`sale ${saleId} did not open within ${OPENING_MS / 1000} s; the API says ${JSON.stringify(seen)}`);
}
