/** The page of the API's documentation, in a browser: what its strict policy would break is seen nowhere else. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { testApi, type TestApi } from '../http/api.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { noBrowser, person } from './browser.ts';

describe.skipIf(noBrowser)('/docs', { timeout: 60_000 }, () => {
  let stores: Stores;
  let api: TestApi;
  beforeAll(async () => {
    stores = await freshStores();
    api = await testApi(stores.env);
  });
  afterAll(async () => {
    await api.close();
    await stores.drop();
  });

  test.each(['phone', 'desk'] as const)(
    'is drawn at the size of a %s, from this host alone, without an error',
    async (size) => {
      const visitor = await person({ size });
      const tab = await visitor.open(`${await api.url()}/docs`);
      await tab.page.getByText('The press of Buy').waitFor();
      expect(tab.errors).toEqual([]);
      const hosts = tab.requests.map((url) => new URL(url).origin);
      expect(new Set(hosts.filter((origin) => origin !== 'null'))).toEqual(new Set([await api.url()]));
    },
  );
});
