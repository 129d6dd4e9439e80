/** The sample shop in a browser's reach: API, worker and keeper in this process, and the stand-in provider. */
import { freePort } from '../../scripts/servers/index.js';
import { startKeeper } from '../../src/keeper/keeper.ts';
import { startProvider } from '../../src/provider/standin.ts';
import { keeperOptions, workerOptions } from '../../src/wiring.ts';
import { startWorker } from '../../src/worker/worker.ts';
import { SECRET, testApi, type TestApi } from '../http/api.ts';
import { freshStores } from '../support/stores.ts';

export type Shop = { api: TestApi; url: string; close: () => Promise<void> };

export const SHOP = { SHOP_SAMPLE: 'true', SHOP_SESSION_SECRET: 'a-secret-of-the-tests-with-32-bytes-or-more' };

/** @param env settings that differ from the usual ones */
export async function openShop(env: Record<string, string> = {}): Promise<Shop> {
  const stores = await freshStores();
  const port = await freePort(); // the provider needs the API's address, and the API the provider's
  const url = `http://127.0.0.1:${port}`;
  const provider = await startProvider({
    webhookUrl: `${url}/webhooks/payments`,
    webhookSecret: SECRET,
    logLevel: 'fatal',
  });
  const quick = { KEEPER_INTERVAL_MS: '100', LATCH_MS: '20', RATE_LIMIT_BUYER: '0' };
  const api = await testApi({ ...stores.env, ...SHOP, ...quick, PAYMENT_PROVIDER_URL: provider.url, ...env });
  await api.app.listen({ host: '127.0.0.1', port });
  const worker = startWorker(api.wired.stores, api.wired.sqs, workerOptions(api.config));
  const keeper = startKeeper(api.wired, keeperOptions(api.config));
  return {
    api,
    url,
    close: async () => {
      await keeper.stop();
      await worker.stop();
      await provider.close();
      await api.close();
      await stores.drop();
    },
  };
}
