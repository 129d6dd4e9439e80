/** /docs: the document as a page that loads nothing from elsewhere, runs nothing inline, is kept, and can be left out. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshStores, type Stores } from '../support/stores.ts';
import { expectProblem, testApi, type TestApi } from './api.ts';

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

const get = (url: string) => api.app.inject(url);

test.each(['/docs', '/docs/'])('%s: all that it needs is here, and nothing of it is inline', async (url) => {
  const page = await get(url);
  expect(page.statusCode).toBe(200);
  expect(page.headers['content-type']).toMatch(/^text\/html/);
  const scripts = [...page.body.matchAll(/<script([^>]*)>([^<]*)</g)];
  expect(scripts.length).toBeGreaterThan(1);
  for (const [, attributes, inline = ''] of scripts)
    expect([attributes, inline.trim()]).toEqual([expect.stringMatching(/src="/), '']);
  expect(page.body).not.toMatch(/<style|\son\w+=|\bstyle=|:\/\//);
  const files = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path);
  expect(files.length).toBeGreaterThan(4);
  for (const path of files) {
    const file = await get(new URL(path, `http://api${url}`).pathname);
    expect([path, file.statusCode, file.headers['cache-control']]).toEqual([path, 200, 'public, max-age=600']);
  }
});

test('its policy allows the own host alone, and no script or style in the page', async () => {
  for (const url of ['/docs', '/docs/static/index.html', '/docs/static/swagger-ui-bundle.js', '/docs/static/none.js']) {
    const { headers } = await get(url);
    const policy = String(headers['content-security-policy']);
    expect(policy, url).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; /);
    expect(policy, url).not.toMatch(/unsafe|http|\*/);
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
  }
});

test('it shows the document that is served, and sends nothing but for it', async () => {
  const [shown, served] = [await get('/docs/json'), await get('/openapi.json')];
  expect(shown.body).toBe(served.body);
  expect(served.headers['cache-control']).toBe('public, max-age=600');
  const start = (await get('/docs/static/swagger-initializer.js')).body;
  expect(start).toContain('"supportedSubmitMethods":[]');
  expect(start).toContain('"layout":"BaseLayout"'); // without the bar that loads another document
  expect((await get('/docs/static/theme/no-tokens.css')).body).toContain('.authorization__btn { display: none }');
  expect(start).toContain('validatorUrl: null');
});

test('files that are not there are problems, and none above the folder is', async () => {
  for (const path of ['none.js', '../package.json', '%2e%2e/package.json', '..%2fpackage.json']) {
    expectProblem(await get(`/docs/static/${path}`), 'not_found');
  }
  expectProblem(await api.app.inject({ method: 'POST', url: '/docs/' }), 'method_not_allowed');
});

test('DOCS_PAGE=false: there is none, but the document', async () => {
  const without = await testApi({ ...stores.env, DOCS_PAGE: 'false' });
  try {
    for (const url of ['/docs', '/docs/', '/docs/json', '/docs/static/swagger-ui.css']) {
      expectProblem(await without.app.inject(url), 'not_found');
    }
    expect((await without.app.inject('/openapi.json')).statusCode).toBe(200);
  } finally {
    await without.close();
  }
});
