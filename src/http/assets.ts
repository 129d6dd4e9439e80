/**
 * Files of the pages: read when the app is built, compressed when somebody first asks for them, and served from memory. The
 * table of the files is fixed, so that no path of a request ever becomes one of the file system.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** They may be kept, but are asked for again each time: 304, unless a release changed them. */
const CACHE = 'no-cache';

type Encoded = { br: Buffer; gzip: Buffer; identity: Buffer };
export type Asset = { type: string; etag: string; bodies: () => Encoded };

/** @throws {Error} for a file that is not there, or of a kind that is not served: when the app is built, not later */
export function asset(file: string): Asset {
  const type = TYPES[extname(file)];
  if (type === undefined) throw new Error(`${file} is of no kind that is served`);
  const identity = readFileSync(file);
  let bodies: Encoded | undefined;
  return {
    type,
    etag: `"${createHash('sha256').update(identity).digest('base64url').slice(0, 22)}"`,
    bodies: () =>
      (bodies ??= {
        identity,
        br: brotliCompressSync(identity, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: identity.length } }),
        gzip: gzipSync(identity),
      }),
  };
}

/** Answers with the file, compressed if the reader can read that, or with 304 if it has it already. */
export function sendAsset(
  request: FastifyRequest,
  reply: FastifyReply,
  { type, etag, bodies }: Asset,
  cache = CACHE,
): FastifyReply {
  void reply.headers({ etag, 'cache-control': cache, vary: 'accept-encoding' });
  if (request.headers['if-none-match']?.includes(etag) === true) return reply.code(304).send();
  const accepted = request.headers['accept-encoding'] ?? '';
  const encoding = (['br', 'gzip'] as const).find((each) =>
    new RegExp(`\\b${each}\\b(?!\\s*;\\s*q=0(\\.0*)?\\b(?!\\.))`).test(accepted),
  );
  if (encoding) void reply.header('content-encoding', encoding);
  return reply.type(type).send(bodies()[encoding ?? 'identity']);
}

/** What a page asks for, as opposed to the pages themselves, which are filled in or depend on who asks. */
const ASKED_FOR = ['.css', '.js', '.svg'];

/** The scripts, styles and pictures of a folder, each under its name after the prefix. */
export function assetsOf(folder: string, prefix: string): Record<string, Asset> {
  const files = readdirSync(folder).filter((file) => ASKED_FOR.includes(extname(file)));
  return Object.fromEntries(files.map((file) => [`${prefix}${file}`, asset(join(folder, file))]));
}

/** A route for each file. @param files path of the route → asset */
export function assetRoutes(app: FastifyInstance, files: Record<string, Asset>): void {
  for (const [url, file] of Object.entries(files)) {
    app.get(url, { schema: { hide: true } }, (request, reply) => sendAsset(request, reply, file));
  }
}
