/** `flashgate up`: the whole system in one process, with a stand-in payment provider and a sample sale. */
import { readConfig } from '../config.ts';
import { migrate } from '../ledger/migrate.ts';
import { listSales } from '../ledger/sales.ts';
import { putSale } from '../operations/sales.ts';
import { startProvider } from '../provider/standin.ts';
import type { Wired } from '../wiring.ts';
import { runUntilSignal, startApi, startKeep, startWork, type Running } from './run.ts';

const SAMPLE = 'sample';
const DAY_MS = 86_400_000;

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
  try {
    // The keeper last: it would open the gate of the new sale as well, and whoever comes second is refused.
    return await runUntilSignal('up', [startApi, startWork, startKeep, sample(own, where)], {
      ...config,
      PAYMENT_PROVIDER_URL: url,
    });
  } finally {
    await provider?.close();
  }
}

/** A sale to try things with, when there is none; and where everything is. */
function sample(own: string, provider: string) {
  return async ({ stores }: Wired): Promise<Running> => {
    if ((await listSales(stores.pool)).length === 0) {
      const now = Date.now();
      await putSale(stores, SAMPLE, {
        name: 'Sample phone',
        total: 100,
        startsAt: new Date(now).toISOString(),
        endsAt: new Date(now + 30 * DAY_MS).toISOString(),
        holdSeconds: 600,
        maxPerReservation: 2,
        price: { amount: 49_900, currency: 'EUR' },
      });
    }
    process.stdout.write(
      `API       ${own}\nOpenAPI   ${own}/openapi.json\ndocs      ${own}/docs\nprovider  ${provider}\nsale      ${own}/sales/${SAMPLE}\n`,
    );
    return { stop: () => Promise.resolve() };
  };
}
