/** Webhooks go to public addresses only: whatever the URL says, and whatever its name resolves to at that moment. */
import { createServer, type Server } from 'node:net';
import type { LookupAddress } from 'node:dns';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isPublic, whyNot } from '../../src/domain/address.ts';
import { createPoster, type PosterOptions } from '../../src/webhooks/post.ts';

const FORBIDDEN: [kind: string, ...addresses: string[]][] = [
  ['loopback', '127.0.0.1', '127.255.255.254', '::1'],
  ['unspecified', '0.0.0.0', '0.1.2.3', '::'],
  ['private', '10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '192.168.255.255'],
  ['unique local', 'fc00::1', 'fd12:3456:789a::1', 'fdff:ffff::1'],
  ['link-local, with the clouds’ metadata', '169.254.0.1', '169.254.169.254', 'fe80::1', 'fe80::1%lo', 'febf::1'],
  ['site-local, of old', 'fec0::1'],
  ['CGNAT', '100.64.0.1', '100.127.255.255'],
  ['multicast', '224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
  ['reserved and broadcast', '240.0.0.1', '255.255.255.255'],
  ['documentation', '192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
  ['protocol assignments', '192.0.0.1', '192.88.99.1', '2001::1'],
  ['benchmarks', '198.18.0.1', '198.19.255.255', '2001:2::1'],
  ['IPv4 in IPv6', '::ffff:127.0.0.1', '::ffff:10.0.0.1', '::ffff:7f00:1', '::127.0.0.1', '64:ff9b::7f00:1'],
  ['6to4 and Teredo, which carry IPv4', '2002:7f00:1::', '2002:a00:1::1', '2001:0:1:2::3'],
  ['discard', '100::1'],
  ['no address at all', '', 'localhost', '127.1', '1.2.3', 'x'],
];
const ALLOWED = [
  ...['1.1.1.1', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.1'],
  ...['169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '192.167.255.255', '192.169.0.0'],
  ...['192.0.1.1', '198.17.255.255', '198.20.0.0', '223.255.255.255'],
  ...['2606:4700:4700::1111', '2a00:1450:4001::1', '2001:4860:4860::8888', '2003::1', '3ffe::1'],
];

/** Public by its number, and given to nobody. */
const UNROUTED = '192.0.1.1';

describe('addresses', () => {
  test.each(FORBIDDEN)('%s', (_, ...addresses) => {
    expect(addresses.filter(isPublic)).toEqual([]);
  });
  test('their neighbours, and everybody’s, are public', () => {
    expect(ALLOWED.filter((address) => !isPublic(address))).toEqual([]);
  });
});

describe('URLs', () => {
  test.each([
    ...['https://127.0.0.1/x', 'https://127.1/', 'https://2130706433/', 'https://0x7f.1/', 'https://0177.0.0.1/'],
    ...['https://[::1]/', 'https://[::ffff:10.0.0.1]/', 'https://[fe80::1]/', 'https://10.0.0.1:8443/', 'https://0/'],
    ...['http://shop.example/', 'ftp://shop.example/', 'file:///etc/passwd', 'shop.example', '/hook', 'https://', ' '],
    ...['https://user@shop.example/', 'https://user:secret@shop.example/', 'javascript:alert(1)'],
  ])('%s is refused', (url) => {
    expect(whyNot(url, false)).toMatch(/^url must|not a public address/);
  });
  test.each(['https://shop.example/hook?a=1', 'https://1.1.1.1/', 'https://[2606:4700::1111]:8443/x'])('%s', (url) => {
    expect(whyNot(url, false)).toBeUndefined();
  });
  test('all but nonsense and passwords when it is allowed', () => {
    for (const url of ['http://127.0.0.1:80/x', 'http://[::1]/', 'http://shop/'])
      expect(whyNot(url, true)).toBeUndefined();
    for (const url of ['x', 'ftp://x/', 'https://u:p@x/']) expect(whyNot(url, true)).toBeDefined();
  });
});

describe('connections', () => {
  /** A port at which nothing must arrive. */
  let trap: Server;
  let port: number;
  let connections = 0;
  beforeAll(async () => {
    trap = createServer((socket) => {
      connections += 1;
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
    });
    await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve));
    port = (trap.address() as AddressInfo).port;
  });
  afterAll(() => void trap.close());

  const secrets = [`whsec_${Buffer.alloc(32, 1).toString('base64')}`];
  const post = async (url: string, options: Partial<PosterOptions>) => {
    const poster = createPoster({ timeoutMs: 5000, allowPrivate: false, ...options });
    const answer = await poster.post({ eventId: 'e', url, secrets, payload: '{}' }, new AbortController().signal);
    await poster.close();
    return answer;
  };
  const resolving = (...answers: string[][]): NonNullable<PosterOptions['resolve']> => {
    let asked = 0;
    return (_, __, done) => {
      const addresses = answers[Math.min(asked++, answers.length - 1)] ?? [];
      done(
        null,
        addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })),
      );
    };
  };

  test('an address in the URL, and names that lead inside, are not connected to', async () => {
    for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]']) {
      const error = expect.stringMatching(/not a public address/) as string;
      expect(await post(`https://${host}:${port}/`, {}), host).toMatchObject({ status: null, error });
    }
    for (const [, ...addresses] of FORBIDDEN.slice(0, -1)) {
      for (const address of addresses) {
        const { error } = await post(`https://shop.test:${port}/`, { resolve: resolving([address]) });
        expect(error).toContain(`shop.test: ${address} is not a public address`);
      }
    }
    expect(connections).toBe(0);
  });

  test('nothing is sent in clear to an endpoint of the time when that was allowed', async () => {
    expect((await post(`http://127.0.0.1:${port}/`, {})).error).toMatch(/must be https/);
    expect((await post(`http://shop.test:${port}/`, { resolve: resolving([UNROUTED]) })).error).toMatch(
      /must be https/,
    );
    expect(connections).toBe(0);
  });

  test('one public address beside one that is not does not help', async () => {
    for (const addresses of [
      ['1.1.1.1', '127.0.0.1'],
      ['127.0.0.1', '1.1.1.1'],
    ]) {
      expect((await post(`https://shop.test:${port}/`, { resolve: resolving(addresses) })).error).toContain(
        '127.0.0.1 is not',
      );
    }
    expect(connections).toBe(0);
  });

  test('a name that changes its mind after it was looked at: what was looked at is what is connected to', async () => {
    let asked = 0;
    const rebinding = resolving([UNROUTED], ['127.0.0.1']);
    const resolve: NonNullable<PosterOptions['resolve']> = (...given) => {
      asked += 1;
      rebinding(...given);
    };
    const poster = createPoster({ timeoutMs: 300, allowPrivate: false, resolve });
    const url = `https://rebind.test:${port}/`;
    const call = () => poster.post({ eventId: 'e', url, secrets, payload: '{}' }, new AbortController().signal);
    expect(await call()).toMatchObject({ status: null, error: expect.not.stringContaining('public') as string });
    expect(asked, 'one look for one connection').toBe(1);
    expect((await call()).error).toContain('127.0.0.1 is not a public address');
    await poster.close();
    expect(connections).toBe(0);
  });

  test('a name that is not known, and one without addresses, are told', async () => {
    expect((await post('https://nowhere.invalid/', {})).error).toMatch(/nowhere\.invalid/);
    expect((await post('https://shop.test/', { resolve: resolving([]) })).error).toBe('shop.test has no address');
  });

  test('the same port is reached when it is allowed: the trap works', async () => {
    expect(await post(`http://127.0.0.1:${port}/`, { allowPrivate: true })).toMatchObject({ status: 200, error: null });
    expect(connections).toBe(1);
  });
});
