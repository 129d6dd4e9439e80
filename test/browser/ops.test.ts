/** The operations room as a person uses it: sign in, start a rush, watch it sell out, pause it, resume it, audit it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../scripts/servers/index.js';
import { ADMIN, settings } from '../http/api.ts';
import { said, start, type Program } from '../process/program.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { noBrowser, person, type Person, type Tab } from './browser.ts';

const LIMIT = 100_000;
/** The machine may be busy. */
const PATIENTLY = { timeout: 20_000 };

describe.skipIf(noBrowser)('/ops', { timeout: 180_000 }, () => {
  let stores: Stores;
  let up: Program;
  let url: string;
  beforeAll(async () => {
    stores = await freshStores();
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    up = start(['up'], { ...settings, ...stores.env, PORT: String(port), UNQUEUED_GRACE_MS: '10000' });
    await said(up, /ops room {2}(\S+)/);
  });
  afterAll(async () => {
    up.kill('SIGTERM');
    const { code } = await up.ended;
    await stores.drop();
    expect(code, up.output()).toBe(0);
  });

  async function signIn(visitor: Person, path = '/ops'): Promise<Tab> {
    const tab = await visitor.open(`${url}${path}`);
    await tab.page.getByLabel('Admin token').fill(ADMIN);
    await tab.page.getByRole('button', { name: 'Sign in' }).click();
    return tab;
  }
  const confirm = async ({ page }: Tab, change: string, yes: string) => {
    await page.getByRole('button', { name: change, exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: yes }).click();
  };
  const figure = ({ page }: Tab, id: string) => page.locator(`#${id}`).textContent();

  test('a wrong token is told, by the keyboard alone; then the good one', async () => {
    const visitor = await person({ size: 'phone' });
    const { page, ...tab } = await visitor.open(`${url}/ops`);
    expect(tab.transferred()).toBeLessThan(LIMIT);
    expect(await tab.axe()).toEqual([]);
    await page.keyboard.press('Tab');
    await page.keyboard.type('this is not the admin token');
    await page.keyboard.press('Enter');
    await page.getByText('This is not an admin token.').waitFor();
    await tab.screenshot('ops-sign-in-phone');
    await page.keyboard.type(ADMIN); // what was wrong is selected
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Sales' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Admin token').waitFor();
  });

  test('a rush: started, watched, paused, resumed, sold out, audited; seen at a desk and on a phone', async () => {
    const visitor = await person({ size: 'desk', colorScheme: 'light' });
    const desk = await signIn(visitor);
    const { page } = desk;
    await page.getByRole('cell', { name: /Sample phone/ }).waitFor();
    expect(await desk.axe()).toEqual([]);
    await desk.screenshot('ops-list-desk');

    await page.getByRole('button', { name: 'Start a rush' }).click();
    await page.waitForURL(/\/ops\/sales\/rush-/);
    await page.getByText('live, every second').waitFor();
    const saleUrl = page.url();
    const phoneOwner = await person({ size: 'phone', colorScheme: 'dark' });
    const phone = await signIn(phoneOwner, new URL(saleUrl).pathname);
    await phone.page.getByText('live, every second').waitFor();

    await confirm(desk, 'Pause', 'Pause it');
    await expect.poll(() => figure(desk, 'state'), PATIENTLY).toBe('paused');
    await expect.poll(() => figure(phone, 'state'), PATIENTLY).toBe('paused');
    await desk.screenshot('ops-paused-desk');
    await confirm(phone, 'Resume', 'Resume it');
    await expect.poll(() => figure(desk, 'state'), PATIENTLY).toBe('open');
    await expect.poll(() => figure(desk, 'left'), { timeout: 60_000 }).toBe('0');
    await Promise.all([desk.screenshot('ops-sold-out-desk'), phone.screenshot('ops-sold-out-phone')]);
    expect(await desk.axe()).toEqual([]);
    expect(await phone.axe()).toEqual([]);

    await page.getByText(/What everybody was told is what the ledger has/).waitFor({ timeout: 120_000 });
    await page.getByRole('button', { name: 'Run the audit' }).click();
    await page.getByText('all checks hold', { exact: true }).waitFor({ timeout: 60_000 });
    await page.getByText('Its checks').click();
    await page.getByRole('cell', { name: 'gate_conserves' }).waitFor();
    await page.getByText('Orders have changed since').waitFor();
    await page.getByLabel('Status').selectOption('PAID');
    await page.getByRole('button', { name: 'Search' }).click();
    const rows = page.getByRole('region', { name: 'Reservations, table' }).getByRole('row');
    await expect.poll(() => rows.count(), PATIENTLY).toBeGreaterThan(2);
    await page.getByText(/^as of /).waitFor();
    for (const what of ['create', 'pause', 'resume']) {
      await page
        .getByRole('region', { name: 'Admin journal' })
        .getByText(new RegExp(`^${what}`))
        .waitFor();
    }
    await Promise.all([desk.screenshot('ops-audited-desk'), phone.screenshot('ops-audited-phone')]);
    expect(await desk.axe()).toEqual([]);
    for (const tab of [desk, phone]) {
      expect(tab.errors).toEqual([]);
      expect(tab.requests.filter((each) => !each.startsWith(url))).toEqual([]);
    }
  });

  test('a sale’s page is small, and nothing moves while its figures change', async () => {
    const visitor = await person({ size: 'desk', colorScheme: 'dark' });
    await signIn(visitor).then(({ page }) => page.getByRole('heading', { name: 'Sales' }).waitFor());
    const tab = await visitor.open(`${url}/ops/sales/sample`);
    expect(tab.transferred()).toBeLessThan(LIMIT);
    await tab.page.getByText('live, every second').waitFor();
    const before = await tab.layoutShift();
    const press = (n: number) =>
      fetch(`${url}/sales/sample/reserve`, {
        method: 'POST',
        headers: { authorization: `Bearer ${settings.SERVICE_TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({ userId: `b-${n}` }),
      });
    for (let n = 0; n < 30; n += 1) expect((await press(n)).status).toBe(202);
    await expect.poll(() => figure(tab, 'left'), PATIENTLY).toBe('70');
    await expect.poll(() => figure(tab, 'l-sold'), PATIENTLY).toBe('30');
    await tab.screenshot('ops-sale-desk-dark');
    expect((await tab.layoutShift()) - before).toBe(0);
    expect(before).toBeLessThan(0.01);

    await tab.page.getByRole('button', { name: 'Resize' }).click();
    await tab.page.getByLabel('New total, in units').fill('10');
    await tab.screenshot('ops-confirm-desk-dark');
    await tab.page.getByRole('button', { name: 'Resize it' }).click();
    await tab.page.getByText(/^Not done: 30 units/).waitFor();
    await tab.page.getByRole('button', { name: 'End' }).click();
    await tab.page.keyboard.press('Enter'); // what has the focus leaves it as it is
    await expect.poll(() => figure(tab, 'state'), PATIENTLY).toBe('open');
    expect(tab.errors.filter((error) => !error.includes('409'))).toEqual([]); // the refusal that was asked for
  });
});
