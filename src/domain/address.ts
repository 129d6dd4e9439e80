/**
 * Where webhooks may be sent: to public addresses, over https. An endpoint's URL is a way to have a keeper call any
 * address that the keeper can reach (server-side request forgery); those of our own network are not for that.
 */
import { BlockList, isIP } from 'node:net';

/** IPv4 that is not globally reachable (IANA's registry of special-purpose addresses), multicast and reserved. */
const SPECIAL_V4: [address: string, prefix: number][] = [
  ['0.0.0.0', 8], // this network
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // shared by a carrier (CGNAT)
  ['127.0.0.0', 8], // loopback
  ['169.254.0.0', 16], // link-local: also the metadata services of clouds
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments
  ['192.0.2.0', 24], // documentation
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16], // private
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, and broadcast
];
/** Of IPv6, global unicast is one block; loopback, link-local, private, multicast and mapped IPv4 are all outside it. */
const GLOBAL_V6: [address: string, prefix: number] = ['2000::', 3];
const SPECIAL_V6: [address: string, prefix: number][] = [
  ['2001::', 23], // protocol assignments, with Teredo, which carries an IPv4 address
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4, which carries an IPv4 address
  ['3fff::', 20], // documentation
];

const special = new BlockList();
for (const [address, prefix] of SPECIAL_V4) special.addSubnet(address, prefix, 'ipv4');
for (const [address, prefix] of SPECIAL_V6) special.addSubnet(address, prefix, 'ipv6');
const global = new BlockList();
global.addSubnet(...GLOBAL_V6, 'ipv6');

/** @param address IPv4 or IPv6, as a resolver gives it; anything else is not public */
export function isPublic(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !special.check(address, 'ipv4');
    case 6:
      return !address.includes('%') && global.check(address, 'ipv6') && !special.check(address, 'ipv6');
    default:
      return false;
  }
}

/** The address in a URL that names one instead of a host; undefined for a name. URL has brought it into one form. */
function addressIn({ hostname }: URL): string | undefined {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(bare) === 0 ? undefined : bare;
}

/** @returns why nothing may be sent to this URL; undefined when it may be, as far as the URL itself tells */
export function whyNot(text: string, allowPrivate: boolean): string | undefined {
  const url = URL.parse(text);
  if (!url || !['https:', 'http:'].includes(url.protocol)) return 'url must be an https address';
  if (url.username !== '' || url.password !== '') return 'url must not hold a user or a password: lists would show it';
  if (allowPrivate) return undefined;
  if (url.protocol !== 'https:') return 'url must be https (WEBHOOKS_ALLOW_PRIVATE=true allows http, for development)';
  const address = addressIn(url);
  return address === undefined || isPublic(address) ? undefined : notPublic(address);
}

export const notPublic = (address: string) =>
  `${address} is not a public address (WEBHOOKS_ALLOW_PRIVATE=true allows it, for development)`;
