/** The room's pages and their files. Whoever is not signed in gets the page to sign in, at whatever address. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { asset, assetRoutes, assetsOf, sendAsset } from '../assets.ts';
import { jsonSchema, SaleParams } from '../schemas.ts';
import type { Ops } from './routes.ts';

const ASSETS = join(import.meta.dirname, 'assets');
const CHARTS = dirname(createRequire(import.meta.url).resolve('uplot'));

export function pageRoutes(scope: FastifyInstance, { sessions }: Ops): void {
  assetRoutes(scope, {
    ...assetsOf(ASSETS, '/ops/assets/'),
    '/ops/assets/uplot.js': asset(join(CHARTS, 'uPlot.iife.min.js')),
    '/ops/assets/uplot.css': asset(join(CHARTS, 'uPlot.min.css')),
  });
  const page = { room: asset(join(ASSETS, 'room.html')), signIn: asset(join(ASSETS, 'sign-in.html')) };
  const schema = { hide: true };
  for (const [url, more] of Object.entries({ '/ops': {}, '/ops/sales/:saleId': { params: jsonSchema(SaleParams) } })) {
    scope.get(url, { schema: { ...schema, ...more } }, async (request, reply) => {
      const signedIn = (await sessions.of(request)) !== undefined;
      return sendAsset(request, reply, signedIn ? page.room : page.signIn, 'no-store');
    });
  }
}
