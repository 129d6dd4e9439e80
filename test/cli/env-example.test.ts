/** .env.example lists every setting, with the default that the program has. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { auditSettings } from '../../src/audit/command.ts';
import { readConfig, settingNames } from '../../src/config.ts';

const text = readFileSync(join(import.meta.dirname, '../../.env.example'), 'utf8');
/** Needed, so shown with an example in place of a default. */
const NEEDED = ['REDIS_URL', 'DATABASE_URL', 'SQS_QUEUE_URL'];
/** Their default is not the same everywhere, and the comment says what it is. */
const COMPUTED = ['API_PROCESSES', 'AUDIT_GRACE_MS'];

type Line = { name: string; value: string; isDefault: boolean };
const lines: Line[] = [...text.matchAll(/^(# )?([A-Z][A-Z_]*)=(.*)$/gm)].map(([, hash, name = '', value = '']) => ({
  ...{ name, value, isDefault: hash !== undefined },
}));
const needed = Object.fromEntries(
  lines.filter(({ name }) => NEEDED.includes(name)).map((each) => [each.name, each.value]),
);

test('every setting of the program and of the audit, each once, and no other', () => {
  const names = lines.map(({ name }) => name).sort();
  expect(names).toEqual([...settingNames, ...Object.keys(auditSettings)].sort());
});

test('the example by itself can be used as it is', () => {
  const given = Object.fromEntries(lines.filter(({ isDefault }) => !isDefault).map((each) => [each.name, each.value]));
  expect(readConfig(given)).toMatchObject({ PORT: 3000, SERVICE_TOKEN: [], ADMIN_TOKEN: [], WEBHOOK_SECRET: [] });
});

test('the defaults are the program’s', () => {
  const defaults: Record<string, unknown> = readConfig(needed);
  for (const { name, value, isDefault } of lines) {
    if (NEEDED.includes(name) || COMPUTED.includes(name)) continue;
    if (name in auditSettings) {
      expect(auditSettings[name]?.says, name).toContain(`(default: ${value})`);
      continue;
    }
    const shown = (readConfig({ ...needed, [name]: value }) as Record<string, unknown>)[name];
    expect(shown, name).toEqual(defaults[name]);
    const none = [undefined, ''].includes(defaults[name] as string) || Array.isArray(defaults[name]);
    expect(value === '', `${name} has ${none ? 'no' : 'a'} default`).toBe(none);
    if (!none) expect(isDefault, name).toBe(true);
  }
});
