/**
 * The audit's own proof. Sound stores are green with every check having looked at something; then each check is broken
 * on purpose and must turn red, by its name, for the right subject, and alone.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exitCodeOf } from '../../src/audit/audit.ts';
import { rules } from '../../src/audit/table.ts';
import { ofGate } from './break-gate.ts';
import { ofMoney } from './break-money.ts';
import { ofPages } from './break-pages.ts';
import { ofSale } from './break-sale.ts';
import { ofWebhooks } from './break-webhooks.ts';
import { apply, auditStores, type AuditStores, dropGuards, namedBy, redChecks } from './stores.ts';

const mutations = [...ofSale, ...ofGate, ...ofMoney, ...ofPages, ...ofWebhooks];

let stores: AuditStores;
beforeAll(async () => {
  stores = await auditStores();
});
afterAll(() => stores.drop());

test('stores that the schema accepts and in which nothing is wrong are green, and every check looked at something', async () => {
  await stores.refill();
  const report = await stores.audit();
  expect(report).toMatchObject({ verdict: 'holds', unjudged: [] });
  expect(redChecks(report)).toEqual([]);
  expect(exitCodeOf(report)).toBe(0);
  const idle = [...rules.keys()].filter(
    (name) => !report.checks.some((check) => check.name === name && check.looked > 0),
  );
  expect(idle).toEqual([]);
});

test('there are checks, and each is broken at least once below', () => {
  expect(rules.size).toBeGreaterThan(0);
  expect(new Set(mutations.map(({ check }) => check))).toEqual(new Set(rules.keys()));
});

test('without constraints, indexes and triggers the same stores are green', async () => {
  await dropGuards(stores.db);
  await stores.refill();
  expect(await stores.audit()).toMatchObject({ verdict: 'holds' });
});

test.each(mutations)('$check: $does', async (mutation) => {
  const { check, subject, alsoRed = [] } = mutation;
  await stores.refill();
  await apply(stores, mutation);
  const report = await stores.audit();
  expect(redChecks(report)).toEqual([check, ...alsoRed].sort());
  expect(namedBy(report, check)).toContain(subject);
  expect(exitCodeOf(report)).toBe(2);
});
