/** /openapi.json is good OpenAPI 3.1, and says what there is: every route, who may call it, every code, examples that fit. */
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { problems } from '../../src/http/problem.ts';
import { freshStores, type Stores } from '../support/stores.ts';
import { stripeSettings } from '../support/stripe.ts';
import { ask, newId, testApi, type TestApi } from './api.ts';
import type { Document, Media, Operation, Response } from './conform.ts';
import { pathsOf } from './paths.ts';
import { HS256 } from './tokens.ts';

/** In the first, with a payment provider that has pages and events of its own: all routes that there can be. */
const MODES: Record<string, [env: Record<string, string>, buyers: string[]]> = {
  service: [stripeSettings('http://127.0.0.1:9'), ['storefront']],
  jwt: [HS256, ['buyer']],
  none: [{ AUTH_MODE: 'none' }, []],
};

let stores: Stores;
const apis: Record<string, TestApi> = {};
beforeAll(async () => {
  stores = await freshStores();
  for (const [mode, [env]] of Object.entries(MODES)) apis[mode] = await testApi({ ...stores.env, ...env });
});
afterAll(async () => {
  await Promise.all(Object.values(apis).map((api) => api.close()));
  await stores.drop();
});

const apiOf = (mode: string) => apis[mode] as TestApi;
const operationsOf = ({ paths }: Document): [path: string, method: string, Operation][] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, string, Operation] => [path, method, operation]),
  );

describe.each(Object.keys(MODES))('AUTH_MODE=%s', (mode) => {
  let document: Document;
  beforeAll(async () => {
    document = (await ask(apiOf(mode), '/openapi.json')).json<Document>();
  });
  const resolve = (given: object) => apiOf(mode).conformity.resolve(given);

  test('is OpenAPI 3.1 by its own schema, in which no reference leads nowhere', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(document));
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    expect(document.openapi).toMatch(/^3\.1\./);
    const references = new Set([...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, to = '']) => to));
    expect(references.size).toBeGreaterThan(40);
    for (const $ref of references) expect(resolve({ $ref }), $ref).not.toEqual({});
  });

  test('each operation has a name of its own, says what it is for and what each answer means', () => {
    const all = operationsOf(document);
    const events = Object.values(document.webhooks).map(({ post }) => post);
    const names = [...all.map(([, , { operationId }]) => operationId), ...events.map((each) => each.operationId)];
    expect(new Set(names).size).toBe(names.length);
    for (const { operationId, summary, tags, responses } of [...all.map(([, , each]) => each), ...events]) {
      expect(operationId).toMatch(/^[a-z][A-Za-z]+$/);
      expect(summary, operationId).toBeTruthy();
      expect(tags, operationId).toHaveLength(1);
      for (const [status, response] of Object.entries(responses)) {
        const { description } = resolve(response) as Response;
        expect(description, `${operationId} ${status}`).not.toBe('Default Response');
      }
      expect(Object.keys(responses), operationId).not.toContain('default');
    }
  });

  test('says who may call what, and what need not be named', () => {
    const [, buyers] = MODES[mode] as (typeof MODES)[string];
    for (const [path, , { security, requestBody, parameters }] of operationsOf(document)) {
      const [, first = ''] = path.split('/');
      const others: Record<string, string[]> = { admin: ['admin'], webhooks: ['signature'] };
      const own = path === '/webhooks/stripe' ? ['provider'] : (others[first] ?? []);
      const wanted = /^\/sales.*reserv/.test(path) ? buyers : own;
      expect(security?.flatMap(Object.keys) ?? [], path).toEqual(wanted);
      if (wanted !== buyers) continue;
      const body = requestBody?.content['application/json']?.schema;
      if (body) expect(body.required ?? []).toEqual(mode === 'jwt' ? [] : ['userId']);
      else expect(parameters?.find(({ name }) => name === 'userId')?.required ?? false).toBe(mode !== 'jwt');
    }
    expect(Object.keys(document.components.securitySchemes).sort()).toEqual(
      ['admin', 'signature', ...(mode === 'service' ? ['provider'] : []), ...buyers].sort(),
    );
    if (mode === 'jwt') expect(document.components.securitySchemes['buyer']).toMatchObject({ bearerFormat: 'JWT' });
  });

  test('its examples keep to its schemas', () => {
    let looked = 0;
    const fits = (schema: object, value: unknown, about: string) => {
      looked += 1;
      apiOf(mode).conformity.validate(schema, value, about);
    };
    for (const [name, { examples = [] }] of Object.entries(document.components.schemas)) {
      for (const value of examples) fits({ $ref: `#/components/schemas/${name}` }, value, name);
    }
    const media = (content: Record<string, Media> | undefined, about: string) => {
      for (const { schema, example, examples = {} } of Object.values(content ?? {})) {
        if (example !== undefined) fits(schema, example, about);
        for (const [name, each] of Object.entries(examples)) {
          fits(schema, (resolve(each) as { value: unknown }).value, `${about} ${name}`);
        }
      }
    };
    const all = [...operationsOf(document), ...Object.entries(document.webhooks).map(([n, { post }]) => [n, '', post])];
    for (const [, , operation] of all as [string, string, Operation][]) {
      media(operation.requestBody?.content, operation.operationId);
      for (const [status, response] of Object.entries(operation.responses)) {
        media((resolve(response) as Response).content, `${operation.operationId} ${status}`);
      }
    }
    expect(looked).toBeGreaterThan(80);
  });
});

/** What is no part of the interface: the document, and the pages that show it. */
const NOT_DOCUMENTED = /^\/(openapi\.json$|docs(\/|$)|ops(\/|$))/;

test('the paths and methods of the document are those of the app, no more and no fewer', async () => {
  const { app, conformity } = apiOf('service');
  const paths = pathsOf(app.printRoutes({ commonPrefix: false })).filter((path) => !NOT_DOCUMENTED.test(path));
  const real = await Promise.all(
    paths.map(async (path) => {
      // No path has this method; each says which ones it has instead.
      const url = path.replaceAll(/:\w+/g, newId());
      const { statusCode, headers } = await app.inject({ method: 'PROPFIND' as 'GET', url });
      expect(statusCode, path).toBe(405);
      const allowed = String(headers['allow']).split(', ');
      return [path.replaceAll(/:(\w+)/g, '{$1}'), allowed.filter((method) => method !== 'HEAD').sort()];
    }),
  );
  const told = Object.entries(conformity.document.paths).map(([path, methods]) => [
    path,
    Object.keys(methods)
      .map((method) => method.toUpperCase())
      .sort(),
  ]);
  expect(real.length).toBeGreaterThan(10);
  expect(Object.fromEntries(told)).toEqual(Object.fromEntries(real));
});

test('every code of the program is one that some operation may answer, but two that belong to none, and two of pages', () => {
  const told = Object.values(apis).flatMap(({ conformity: { document } }) =>
    operationsOf(document).flatMap(([, , { responses }]) => codesOf(apiOf('service'), responses)),
  );
  const codes = Object.keys(problems);
  expect([...new Set(told), 'not_found', 'method_not_allowed', 'csrf_token_wrong', 'already_running'].sort()).toEqual(
    [...codes].sort(),
  );
  const { schemas } = apiOf('service').conformity.document.components;
  expect(schemas['Problem']?.properties['code']).toMatchObject({ enum: codes });
});

const codesOf = ({ conformity }: TestApi, responses: Record<string, object>) =>
  Object.values(responses).flatMap((response) => {
    const { content } = conformity.resolve(response) as Response;
    return Object.keys(content?.['application/problem+json']?.examples ?? {});
  });
