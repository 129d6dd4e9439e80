/** `flashgate up`: the whole system in one process, with a stand-in payment provider and a sample sale. */
import { readConfig, type Config } from '../config.ts';
import type { Sale } from '../domain/sale.ts';
import { migrate } from '../ledger/migrate.ts';
import { listSales } from '../ledger/sales.ts';
import { putSale, SaleConflict } from '../operations/sales.ts';
import { startProvider } from '../provider/standin.ts';
import type { Wired } from '../wiring.ts';
import { roomOf } from './room.ts';
import { runUntilSignal, startApiWith, startKeep, startWork, type Running } from './run.ts';

const SAMPLE = 'sample';
const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;

export async function upCommand(): Promise<number> {
  const config = readConfig(process.env);
  await migrate(config.DATABASE_URL);
  const own = `http://${config.HOST === '0.0.0.0' ? '127.0.0.1' : config.HOST}:${config.PORT}`;
  const [secret] = config.WEBHOOK_SECRET;
  const needsStandIn = config.PAYMENT_PROVIDER === 'http' && config.PAYMENT_PROVIDER_URL === undefined;
  if (needsStandIn && secret === undefined)
    throw new Error('WEBHOOK_SECRET is not set: the stand-in payment provider signs with it');
  const provider =
    needsStandIn && secret !== undefined
      ? await startProvider({
          port: config.PROVIDER_PORT,
          webhookUrl: `${own}/webhooks/payments`,
          webhookSecret: secret,
          logLevel: config.LOG_LEVEL,
        })
      : undefined;
  const url = provider?.url ?? config.PAYMENT_PROVIDER_URL;
  const where = provider ? `${provider.url} (a stand-in)` : (url ?? 'Stripe');
  const startApi = (wired: Wired, settings: Config) =>
    startApiWith(
      wired,
      settings,
      roomOf(wired.registry, process.env, provider && { apiUrl: own, providerUrl: provider.url }),
    );
  try {
    // The keeper last: it would open the gate of the new sale as well, and whoever comes second is refused.
    return await runUntilSignal('up', [startApi, startWork, sample(own, where, config), startKeep], {
      ...config,
      PAYMENT_PROVIDER_URL: url,
    });
  } finally {
    await provider?.close();
  }
}

/** A sale to try things with, when there is none; and where everything is. */
function sample(own: string, provider: string, { SHOP_SAMPLE, OPS_ROOM, ADMIN_TOKEN }: Config) {
  return async ({ stores }: Wired): Promise<Running> => {
    const sales = await listSales(stores.pool);
    const before = sales.find(({ saleId }) => saleId === SAMPLE);
    if (sales.length === 0) await putSale(stores, SAMPLE, { ...NEW, ...fromNow() });
    else if (before?.state === 'open' && before.endsAt < Date.now() + WEEK_MS) await prolong(stores, before);
    process.stdout.write(
      `API       ${own}\nOpenAPI   ${own}/openapi.json\ndocs      ${own}/docs\n` +
        (OPS_ROOM && ADMIN_TOKEN.length > 0 ? `ops room  ${own}/ops (sign in with ADMIN_TOKEN)\n` : '') +
        `provider  ${provider}\nsale      ${own}/sales/${SAMPLE}\n` +
        (SHOP_SAMPLE ? `shop      ${own}/shop/${SAMPLE}\n` : '') +
        'Stop with Ctrl-C.\n',
    );
    return { stop: () => Promise.resolve() };
  };
}

const NEW = {
  name: 'Sample phone',
  total: 100,
  holdSeconds: 600,
  maxPerReservation: 2,
  price: { amount: 49_900, currency: 'EUR' },
};

const fromNow = () => ({
  startsAt: new Date().toISOString(),
  endsAt: new Date(Date.now() + 30 * DAY_MS).toISOString(),
});

/** The sample sale of an earlier start goes on, unless somebody has paused or ended it. */
async function prolong(stores: Wired['stores'], { saleId, amount, currency, startsAt, ...sale }: Sale): Promise<void> {
  const times = { startsAt: new Date(startsAt).toISOString(), endsAt: fromNow().endsAt };
  try {
    await putSale(stores, saleId, { ...sale, ...times, price: { amount, currency } });
  } catch (error) {
    // The ledger has it: the keeper, which loads the gate, does so with these settings.
    if (!(error instanceof SaleConflict && error.code === 'gate_not_loaded')) throw error;
  }
}
