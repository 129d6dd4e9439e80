/** Certificates for a test, made by openssl: an authority, a server's and a client's from it, and a stranger's authority. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';

/** Paths of PEM files. The server's certificate is made out to 127.0.0.1, and to no name. */
export type Certificates = { ca: string; cert: string; key: string; stranger: string };

export const opensslIsThere = spawnSync('openssl', ['version']).status === 0;

export function makeCertificates(): Certificates {
  const folder = mkdtempSync(join(inject('services').folder, 'tls-'));
  const path = (name: string) => join(folder, name);
  const openssl = (name: string, ...args: string[]) => {
    const made = ['-keyout', path(`${name}.key`), '-out', path(`${name}.pem`), '-subj', `/CN=${name}`, '-days', '2'];
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    const { status, stderr } = spawnSync('openssl', ['req', '-x509', ...curve, ...made, ...args], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`openssl: ${stderr}`);
  };
  openssl('ca');
  openssl('stranger');
  const signed = ['-CA', path('ca.pem'), '-CAkey', path('ca.key')];
  openssl(
    'server',
    ...signed,
    '-addext',
    'subjectAltName=IP:127.0.0.1',
    '-addext',
    'basicConstraints=critical,CA:FALSE',
  );
  return { ca: path('ca.pem'), cert: path('server.pem'), key: path('server.key'), stranger: path('stranger.pem') };
}
