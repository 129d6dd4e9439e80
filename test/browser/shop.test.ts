/** The sample shop as a buyer meets it: in a browser, with the whole system behind it. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { admin, newId, putSale, SERVICE, win } from '../http/api.ts';
import { noBrowser, person, sizes, type Tab } from './browser.ts';
import { openShop, type Shop } from './shop-house.ts';

const screen = (tab: Tab, name: string) => tab.page.locator(`body[data-screen="${name}"]`).waitFor();
const press = (tab: Tab, label: RegExp) => tab.page.getByRole('button', { name: label }).click();
const inAWhile = (ms: number) => new Date(Date.now() + ms).toISOString();

describe.skipIf(noBrowser)('the sample shop', { timeout: 60_000 }, () => {
  let shop: Shop;
  beforeAll(async () => {
    shop = await openShop();
  }, 90_000);
  afterAll(() => shop.close());

  /** The keeper may be opening the same sale at this moment; then it is asked for again. */
  const sale = (changes: Record<string, unknown> = {}, saleId = newId()) =>
    vi.waitFor(() => putSale(shop.api, changes, saleId), { timeout: 10_000 });
  const pageOf = (saleId: string) => `${shop.url}/shop/${saleId}`;

  test.each(['phone', 'desk'] as const)('buy, reload, another tab, pay: at the size of a %s', async (size) => {
    const saleId = await sale();
    const buyer = await person({ size });
    const tab = await buyer.open(pageOf(saleId));
    await screen(tab, 'open');
    expect(tab.transferred(), 'bytes to the first paint and beyond it').toBeLessThan(100_000);
    await tab.screenshot(`shop-open-${size}`);
    expect(await tab.axe()).toEqual([]);

    await press(tab, /^Buy for €499.00$/);
    await screen(tab, 'held');
    expect(await tab.page.locator('#title').textContent()).toBe('You hold one');
    expect(await tab.page.locator('#timer').textContent()).toMatch(/^9:5\d$/);
    await tab.screenshot(`shop-held-${size}`);
    expect(await tab.axe()).toEqual([]);

    await tab.page.reload();
    await screen(tab, 'held');
    const second = await buyer.open(pageOf(saleId));
    await screen(second, 'held');

    await press(tab, /^Pay €499.00$/);
    await screen(tab, 'paid');
    await screen(second, 'paid');
    await tab.screenshot(`shop-paid-${size}`);
    expect(await tab.axe()).toEqual([]);

    expect(await tab.page.locator('#left').textContent()).toBe('9 of 10 left');
    expect([tab.errors, second.errors]).toEqual([[], []]);
    for (const each of [tab, second]) {
      expect(await each.layoutShift()).toBeLessThan(0.01);
      expect(new Set(each.requests.map((url) => new URL(url).origin))).toEqual(new Set([shop.url]));
      expect(await each.answers()).not.toContain(SERVICE);
    }
  });

  test('figures change under the eyes of a visitor, and nothing jumps', async () => {
    const saleId = await sale();
    const tab = await (await person()).open(pageOf(saleId));
    await tab.page.getByText('10 of 10 left').waitFor();
    for (const left of [9, 8, 7]) {
      await win(shop.api, saleId, `other-${left}`);
      await tab.page.getByText(`${left} of 10 left`).waitFor();
    }
    expect(await tab.layoutShift()).toBe(0);
    expect(tab.errors).toEqual([]);
  });

  test('before it begins; and then it begins by itself', async () => {
    const saleId = await sale({ startsAt: inAWhile(6000) });
    const tab = await (await person()).open(pageOf(saleId));
    await screen(tab, 'scheduled');
    expect(await tab.page.locator('#timer').textContent()).toMatch(/^0:0\d$/);
    await tab.screenshot('shop-scheduled-phone');
    expect(await tab.axe()).toEqual([]);
    await screen(tab, 'open');
    await press(tab, /^Buy/);
    await screen(tab, 'held');
    expect(await tab.layoutShift()).toBeLessThan(0.01);
    expect(tab.errors).toEqual([]);
  });

  test('a hold that is not paid ends, and its buyer may press again; one that is given up as well', async () => {
    const saleId = await sale({ holdSeconds: 10 });
    const tab = await (await person()).open(pageOf(saleId));
    await press(tab, /^Buy/);
    await screen(tab, 'held');
    await screen(tab, 'expired');
    await tab.screenshot('shop-expired-phone');
    expect(await tab.axe()).toEqual([]);
    await press(tab, /^Try for another$/);
    await screen(tab, 'held');
    await press(tab, /^Give it up$/);
    await screen(tab, 'cancelled');
    await tab.screenshot('shop-cancelled-phone');
    expect(await tab.axe()).toEqual([]);
    expect(tab.errors).toEqual([]);
  });

  test('sold out: may come back, when that is, and that it has; or never', async () => {
    const saleId = await sale({ total: 1, holdSeconds: 60 });
    const first = await (await person()).open(pageOf(saleId));
    await press(first, /^Buy/);
    await screen(first, 'held');
    const second = await (await person()).open(pageOf(saleId));
    await screen(second, 'none_now');
    await second.screenshot('shop-none-now-phone');
    expect(await second.axe()).toEqual([]);
    await press(second, /^Try to get one$/);
    await screen(second, 'sold_out_may_return');
    expect(await second.page.locator('#title').textContent()).toMatch(/^Sold out, may come back at \d\d:\d\d(:\d\d)?$/);
    await second.screenshot('shop-may-return-phone');
    expect(await second.axe()).toEqual([]);
    await press(first, /^Give it up$/);
    await screen(second, 'open');
    await press(second, /^Buy/);
    await screen(second, 'held');
    await press(second, /^Pay/);
    await screen(second, 'paid');
    const third = await (await person()).open(pageOf(saleId));
    await screen(third, 'none_now');
    await press(third, /^Try to get one$/);
    // What a process knows of the ledger is up to a second old: until then it says "maybe".
    const now = () => third.page.locator('body').getAttribute('data-screen');
    const sayNever = async () => {
      if ((await now()) === 'sold_out') return;
      await third.page.getByRole('button', { name: /^Try again$/ }).click({ timeout: 500 });
      expect(await now()).toBe('sold_out');
    };
    await vi.waitFor(sayNever, { timeout: 15_000, interval: 200 });
    await third.screenshot('shop-sold-out-phone');
    expect(await third.axe()).toEqual([]);
    expect([first.errors, second.errors, third.errors]).toEqual([[], [], []]);
  });

  test('paused, going on, ended', async () => {
    const saleId = await sale();
    const tab = await (await person()).open(pageOf(saleId));
    await screen(tab, 'open');
    await admin(shop.api, 'POST', `/${saleId}/pause`);
    await screen(tab, 'paused');
    await tab.screenshot('shop-paused-phone');
    expect(await tab.axe()).toEqual([]);
    await admin(shop.api, 'POST', `/${saleId}/resume`);
    await screen(tab, 'open');
    await admin(shop.api, 'POST', `/${saleId}/end`);
    await screen(tab, 'ended');
    await tab.screenshot('shop-ended-phone');
    expect(await tab.axe()).toEqual([]);
    expect(tab.errors).toEqual([]);
  });

  test('the connection is lost, which shows; a press in the meantime is made when it is back', async () => {
    const saleId = await sale();
    const buyer = await person();
    const tab = await buyer.open(pageOf(saleId));
    await screen(tab, 'open');
    await buyer.context.setOffline(true);
    await tab.page.getByText('No connection to the shop.').waitFor();
    await tab.screenshot('shop-lost-phone');
    expect(await tab.axe()).toEqual([]);
    await press(tab, /^Buy/);
    await screen(tab, 'busy');
    const again = tab.page.getByText('Connected again.').waitFor(); // it goes away again, maybe before the hold comes
    await buyer.context.setOffline(false);
    await again;
    await screen(tab, 'held');
    await expect.poll(() => tab.page.locator('#connection').textContent(), { timeout: 15_000 }).toBe('');
    expect(await tab.page.locator('#title').textContent()).toBe('You hold one');
  });

  test('by keyboard alone, with the focus where something came of a press', async () => {
    const saleId = await sale();
    const { page, errors } = await (await person({ size: 'desk' })).open(pageOf(saleId));
    await page.getByRole('button', { name: /^Buy/ }).waitFor();
    const focused = () => page.evaluate<string>('document.activeElement.id || document.activeElement.textContent');
    await page.keyboard.press('Tab');
    expect(await focused()).toMatch(/^Buy/);
    await page.keyboard.press('Enter');
    await page.getByText('You hold one', { exact: true }).waitFor();
    await expect.poll(focused).toBe('title');
    // Said once, not with each second.
    expect(await page.locator('#news').textContent()).toMatch(/^You hold one\. Pay before /);
    await page.keyboard.press('Tab');
    expect(await focused()).toMatch(/^Pay/);
    await page.keyboard.press('Space');
    await page.getByText('Paid. It is yours.').first().waitFor();
    expect(errors).toEqual([]);
  });

  test.each(['light', 'dark'] as const)(
    'in %s colours, and with as little motion as is wished',
    async (colorScheme) => {
      const saleId = await sale();
      for (const size of Object.keys(sizes) as (keyof typeof sizes)[]) {
        const tab = await (await person({ size, colorScheme, reducedMotion: 'reduce' })).open(pageOf(saleId));
        await press(tab, /^Buy/);
        await screen(tab, 'held');
        await tab.screenshot(`shop-${colorScheme}-${size}`);
        expect(await tab.axe()).toEqual([]);
      }
    },
  );

  test('a sale that there is not is a page that says so', async () => {
    const tab = await (await person()).open(pageOf('nothing-like-it'));
    await tab.page.getByRole('heading', { name: 'There is no such sale' }).waitFor();
    await tab.screenshot('shop-none-phone');
    expect(await tab.axe()).toEqual([]);
  });
});
