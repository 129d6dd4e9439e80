/**
 * Pages as a person sees them, in a real Chromium (scripts/find-browser.js). Where there is none the tests are skipped,
 * and the run says why: put everything into `describe.skipIf(noBrowser)`.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { AxeResults } from 'axe-core';
import { chromium, type Browser, type BrowserContext, type LaunchOptions, type Page } from 'playwright-core';
import { afterAll, afterEach } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const SCREENSHOTS = join(ROOT, '.flashgate/screenshots');

export const sizes = { phone: { width: 390, height: 844 }, desk: { width: 1280, height: 800 } };

const found = await findBrowser();
/** Why there is no browser; undefined where there is one. */
export const noBrowser = 'reason' in found ? found.reason : undefined;
if (noBrowser !== undefined) console.warn(`browser tests are skipped: ${noBrowser}`);

async function findBrowser(): Promise<{ path: string; env: Record<string, string> } | { reason: string }> {
  const script = join(ROOT, 'scripts/find-browser.js');
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [script]);
  if (stderr !== '') console.warn(stderr.trim());
  return JSON.parse(stdout) as Awaited<ReturnType<typeof findBrowser>>;
}

let launched: Promise<Browser> | undefined;
const contexts: BrowserContext[] = [];
afterEach(async () => {
  await Promise.all(contexts.splice(0).map((context) => context.close()));
});
afterAll(async () => {
  await (await launched)?.close();
});

async function launch(): Promise<Browser> {
  if ('reason' in found) throw new Error(`there is no browser: ${found.reason}`);
  const { LD_LIBRARY_PATH: _, ...env } = process.env as Record<string, string>;
  const options: LaunchOptions = { executablePath: found.path, env: { ...env, ...found.env }, timeout: 60_000 };
  // Its sandbox cannot be had as root, nor in many containers; the pages are our own.
  if (process.getuid?.() === 0) return chromium.launch(options);
  return chromium.launch({ ...options, chromiumSandbox: true }).catch(() => chromium.launch(options));
}

export type Person = {
  context: BrowserContext;
  /** Opens a tab and waits until it is loaded. */
  open: (url: string) => Promise<Tab>;
};

export type Tab = {
  page: Page;
  /** Errors of the console, uncaught ones too. Chromium counts each answer from 400 on, and what fails while offline. */
  errors: string[];
  /** Every address that was asked for. */
  requests: string[];
  /** Headers and bodies of all answers but endless ones. */
  answers: () => Promise<string>;
  /** Bytes over the wire so far, headers included, of requests that are done. */
  transferred: () => number;
  /** Cumulative layout shift so far, without what follows a person's own input within half a second. */
  layoutShift: () => Promise<number>;
  /** Rules that the page breaks, as axe says them: none is good. */
  axe: () => Promise<string[]>;
  /** Into .flashgate/screenshots/NAME.png */
  screenshot: (name: string) => Promise<void>;
};

/**
 * Somebody with a browser of their own: cookies, size, preferences. Gone at the end of the test.
 * @param options as Playwright's `newContext` has them, with `size` a phone's if it is left out
 */
export async function person(
  options: { size?: keyof typeof sizes } & Parameters<Browser['newContext']>[0] = {},
): Promise<Person> {
  const { size = 'phone', ...more } = options;
  const browser = await (launched ??= launch());
  const context = await browser.newContext({ viewport: sizes[size], hasTouch: size === 'phone', ...more });
  contexts.push(context);
  context.setDefaultTimeout(15_000);
  await context.addInitScript({ content: WATCH_SHIFTS });
  return { context, open: (url) => openTab(context, url) };
}

const WATCH_SHIFTS = `
  globalThis.layoutShift = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) globalThis.layoutShift += entry.value;
  }).observe({ type: 'layout-shift', buffered: true });`;

async function openTab(context: BrowserContext, url: string): Promise<Tab> {
  const page = await context.newPage();
  const errors: string[] = [];
  const requests: string[] = [];
  const answers: Promise<string>[] = [];
  let bytes = 0;
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('request', (request) => requests.push(request.url()));
  page.on('response', (response) => {
    const headers = response.headers();
    const endless = headers['content-type']?.startsWith('text/event-stream') === true;
    // A redirect has no body, and that of a page that was left is gone.
    const body = endless ? Promise.resolve('') : response.text().catch(() => '');
    answers.push(body.then((text) => `${response.url()}\n${JSON.stringify(headers)}\n${text}`));
  });
  const network = await context.newCDPSession(page);
  network.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength));
  await network.send('Network.enable');
  await page.goto(url, { waitUntil: 'load' });
  return {
    page,
    errors,
    requests,
    answers: async () => (await Promise.all(answers)).join('\n'),
    transferred: () => bytes,
    layoutShift: () => page.evaluate<number>('globalThis.layoutShift'),
    axe: () => brokenRules(page),
    screenshot: async (name) => {
      mkdirSync(SCREENSHOTS, { recursive: true });
      await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
    },
  };
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

async function brokenRules(page: Page): Promise<string[]> {
  // Evaluated by the debugger: the page's own policy, which allows no foreign script, stays as it is.
  await page.evaluate(`globalThis.axe ?? (() => { ${AXE} })()`);
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target }) => `${id} at ${target.join(' ')}: ${help}`),
  );
}
