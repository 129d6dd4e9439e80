/** The table of arrows and the tests that cut there name each other. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { arrows } from './arrows.ts';

test.each(Object.entries(arrows))('%s is cut by a test', (name, arrow) => {
  const source = readFileSync(join(import.meta.dirname, arrow.test), 'utf8');
  expect(source).toContain(`describe(arrows.${name}.when,`);
});
