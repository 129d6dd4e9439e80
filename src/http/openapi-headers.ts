/** The headers that answers have, as OpenAPI's components. */
const seconds = { type: 'integer', minimum: 1 };

export const headers = {
  Location: {
    description: 'The reservation’s own address, to be asked for as it stands',
    required: true,
    schema: { type: 'string', pattern: '^/sales/[A-Za-z0-9_-]{1,64}/reservations/' },
    example: '/sales/sample/reservations/541460b2-8259-4f70-9018-0676e172f86a?userId=u-1',
  },
  'Cache-Control': { required: true, schema: { type: 'string' }, example: 'public, max-age=1' },
  'Retry-After': {
    description:
      'Seconds, not the same for everybody: so that those who were refused together do not come back together',
    required: true,
    schema: seconds,
    example: 2,
  },
  RetryAfterSoldOut: {
    description: 'With `sold_out`, unless `mayReturn` is false: seconds until a unit may come back',
    required: false,
    schema: seconds,
    example: 412,
  },
  'WWW-Authenticate': {
    description: 'RFC 6750; with `error` for a buyer’s own token that is not good',
    required: true,
    schema: { type: 'string', pattern: '^Bearer realm="flashgate"' },
    example: 'Bearer realm="flashgate"',
  },
  // draft-ietf-httpapi-ratelimit-headers-06
  'RateLimit-Limit': { description: 'Presses per window', required: true, schema: { type: 'integer' }, example: 100 },
  'RateLimit-Remaining': { required: true, schema: { type: 'integer' }, example: 0 },
  'RateLimit-Reset': {
    description: 'Seconds until the window is over',
    required: true,
    schema: { type: 'integer' },
    example: 7,
  },
} as const;
export type HeaderName = keyof typeof headers;

/** References to them, by the name that the answer has. */
export function headersOf(names: HeaderName[]): Record<string, { $ref: string }> {
  return Object.fromEntries(
    names.map((name) => [
      name === 'RetryAfterSoldOut' ? 'Retry-After' : name,
      { $ref: `#/components/headers/${name}` },
    ]),
  );
}
