/** docker-compose.yml and Dockerfile against the code: commands, settings, the queue, and what is copied. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig, settingNames } from '../../src/config.ts';
import { deadLetterUrl } from '../../src/queue/depth.ts';
import { docAt, read, ROOT } from './documents.ts';

type Service = {
  build?: string;
  command?: string[];
  environment?: Record<string, string | number>;
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: object;
};
type Compose = { services: Record<string, Service>; configs: { queues: { content: string } } };
type Queue = { name: string; attributes: Record<string, string> };

const compose = parse(read('docker-compose.yml'), { merge: true }) as Compose;
const ours = Object.entries(compose.services).filter(([, { build }]) => build !== undefined);

/** What the AWS client reads by itself. */
const OF_AWS = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'];
const SECRETS: Record<string, string> = {
  POSTGRES_PASSWORD: 'secret',
  SERVICE_TOKEN: '0123456789abcdef',
  ADMIN_TOKEN: '0123456789abcdef',
  WEBHOOK_SECRET: `whsec_${Buffer.alloc(24).toString('base64')}`,
};

/** Values as Compose fills them in: `${NAME:?why}` from the file .env, `${NAME:-default}` by default. */
const filled = (environment: Record<string, string | number>) =>
  Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [
      name,
      String(value).replaceAll(/\$\{(\w+):(\?|-)([^}]*)\}/g, (_, variable: string, kind: string, rest: string) =>
        kind === '-' ? rest : (SECRETS[variable] ?? `no ${variable} in .env`),
      ),
    ]),
  );

test('runs each kind of process, and migrations first', () => {
  const commands = Object.fromEntries(ours.map(([name, { command }]) => [name, command]));
  expect(commands).toEqual({ migrate: ['migrate'], api: ['serve'], worker: ['work'], keeper: ['keep'] });
  for (const [name, { depends_on: needs = {} }] of ours) {
    if (name !== 'migrate') expect(needs.migrate?.condition).toBe('service_completed_successfully');
    for (const other of Object.keys(needs)) expect(Object.keys(compose.services)).toContain(other);
  }
});

test.each(ours)('%s has settings that exist and fit together', (_, { environment = {} }) => {
  const unknown = Object.keys(environment).filter((name) => !settingNames.includes(name) && !OF_AWS.includes(name));
  expect(unknown).toEqual([]);
  // As the Dockerfile sets them.
  expect(() => readConfig({ NODE_ENV: 'production', HOST: '0.0.0.0', ...filled(environment) })).not.toThrow();
});

test('README says how to make the file .env that it asks for', () => {
  const wanted = [...read('docker-compose.yml').matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name);
  const block = docAt('README.md').blocks.find(({ lines }) => lines.some((line) => line.startsWith('cat > .env')));
  const made = block?.lines.flatMap((line) => /^(\w+)=/.exec(line)?.[1] ?? []);
  expect([...new Set(wanted)].sort()).toEqual(made?.sort());
});

test('the queue that the services use is made, with a dead-letter queue that is found', () => {
  const { queues } = JSON.parse(compose.configs.queues.content) as { queues: Queue[] };
  const url = String(compose.services.worker?.environment?.SQS_QUEUE_URL);
  const queue = queues.find(({ name }) => url.endsWith(`/${name}`));
  const dead = deadLetterUrl(url, queue?.attributes.RedrivePolicy);
  expect(queues.map(({ name }) => new URL(name, url).href)).toContain(dead);
});

test('the Dockerfile copies what exists', () => {
  const copies = [...read('Dockerfile').matchAll(/^COPY (.+) \S+$/gm)].flatMap(([, paths = '']) => paths.split(' '));
  expect(copies.length).toBeGreaterThan(3);
  expect(copies.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
