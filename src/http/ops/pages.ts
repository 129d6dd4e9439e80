/** The room's pages and their files. Whoever is not signed in gets the page to sign in, at whatever address. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { asset, assetRoutes, sendAsset } from '../assets.ts';
import { jsonSchema, SaleParams } from '../schemas.ts';
import type { Ops } from './routes.ts';

const own = (file: string) => asset(join(import.meta.dirname, 'assets', file));
const CHARTS = dirname(createRequire(import.meta.url).resolve('uplot'));

const SCRIPTS = ['api.js', 'charts.js', 'changes.js', 'elements.js', 'lists.js', 'room.js', 'sale.js', 'sign-in.js'];

export function pageRoutes(scope: FastifyInstance, { sessions }: Ops): void {
  assetRoutes(scope, {
    ...Object.fromEntries([...SCRIPTS, 'ops.css', 'icon.svg'].map((file) => [`/ops/assets/${file}`, own(file)])),
    '/ops/assets/uplot.js': asset(join(CHARTS, 'uPlot.iife.min.js')),
    '/ops/assets/uplot.css': asset(join(CHARTS, 'uPlot.min.css')),
  });
  const page = { room: own('room.html'), signIn: own('sign-in.html') };
  const schema = { hide: true };
  for (const [url, more] of Object.entries({ '/ops': {}, '/ops/sales/:saleId': { params: jsonSchema(SaleParams) } })) {
    scope.get(url, { schema: { ...schema, ...more } }, async (request, reply) => {
      const signedIn = (await sessions.of(request)) !== undefined;
      return sendAsset(request, reply, signedIn ? page.room : page.signIn, 'no-store');
    });
  }
}
