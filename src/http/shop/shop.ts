/**
 * The sample shop, `/shop/{saleId}`: a page, and the small server behind it that a storefront would have, a "backend for
 * the frontend". It has the service token; the page has a session cookie that no script can read. SHOP_SAMPLE turns it on.
 *
 * Everything but a page is answered with 200 and a {@link View}, refusals as well: they are what the page shows, no
 * failures of its own, and a browser would log each of them as an error.
 */
import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { SaleId } from '../../domain/reservation.ts';
import type { Api } from '../app.ts';
import { assetRoutes, assetsOf } from '../assets.ts';
import { isFromOwnPage } from '../origin.ts';
import { Problem } from '../problem.ts';
import { jsonSchema, SaleParams } from '../schemas.ts';
import { asked, clientOf } from './calls.ts';
import { reservationEvents } from './events.ts';
import { ASSETS, NO_SUCH_SALE, shopPage } from './page.ts';
import { pay } from './pay.ts';
import { keepSession, newSession, sessionOf, withHold } from './session.ts';
import { look, type View, type Visit } from './view.ts';

type OfSale = { Params: z.infer<typeof SaleParams> };

export async function shopRoutes(scope: FastifyInstance, { config }: Pick<Api, 'config'>): Promise<void> {
  const client = clientOf(scope, config);
  await scope.register(cookie, { secret: config.SHOP_SESSION_SECRET });
  assetRoutes(scope, assetsOf(ASSETS, '/shop-assets/'));
  scope.addHook('onSend', (request, reply, _payload, done) => {
    // What is somebody's own is kept by nobody.
    if (request.routeOptions.url?.startsWith('/shop/')) void reply.header('cache-control', 'no-store');
    done();
  });

  scope.get<OfSale>('/shop/:saleId', { schema: { hide: true } }, async (request, reply) => {
    const { saleId } = request.params;
    const session = sessionOf(request) ?? newSession();
    const view = SaleId.safeParse(saleId).success ? await look({ client, saleId, session }) : undefined;
    if (!view || view.refused?.code === 'sale_not_found') return html(reply.code(404), NO_SUCH_SALE);
    keepSession(reply, session);
    return html(reply, shopPage(saleId, view));
  });

  const schema = { hide: true, params: jsonSchema(SaleParams) };
  scope.get<OfSale>('/shop/:saleId/view', { schema }, async (request) => {
    const visit = visitOf(request);
    return visit ? look(visit) : NO_COOKIES;
  });

  scope.get<OfSale>('/shop/:saleId/events', { schema }, (request, reply) => {
    const visit = visitOf(request);
    return visit ? reservationEvents(scope, config, visit, request, reply) : reply.code(204).send();
  });

  /** A press of one of the page's buttons. */
  const press = (name: string, act: (visit: Visit, reply: FastifyReply) => Promise<View>) =>
    scope.post<OfSale>(`/shop/:saleId/${name}`, { schema, onRequest: own }, async (request, reply) => {
      const visit = visitOf(request);
      return visit ? act(visit, reply) : NO_COOKIES;
    });
  const visitOf = (request: FastifyRequest<OfSale>): Visit | undefined => {
    const session = sessionOf(request);
    return session && { client, saleId: request.params.saleId, session };
  };
  press('buy', buy);
  press('pay', async (visit) => {
    const reservationId = visit.session.holds[visit.saleId];
    if (reservationId === undefined) return look(visit);
    const paying = await pay(visit, reservationId, config);
    return 'refused' in paying ? look(visit, paying.refused) : { ...(await look(visit)), ...paying };
  });
  press('cancel', giveUp);
}

/** Without a cookie every press would be somebody else's. */
const NO_COOKIES: View = { sale: null, reservation: null, lost: false, refused: { code: 'no_cookies' } };

/** Another site must not press for a buyer. */
const own = (request: FastifyRequest, _reply: FastifyReply, done: () => void) => {
  if (isFromOwnPage(request) !== true) throw new Problem('forbidden', 'this is for the shop’s own page');
  done();
};

async function buy(visit: Visit, reply: FastifyReply): Promise<View> {
  const { client, saleId, session } = visit;
  const pressed = await asked(
    client.POST('/sales/{saleId}/reserve', { params: { path: { saleId } }, body: { userId: session.buyer } }),
  );
  if ('refused' in pressed) return look(visit, pressed.refused);
  const holding = withHold(session, saleId, pressed.found.reservationId);
  keepSession(reply, holding);
  return look({ ...visit, session: holding });
}

async function giveUp(visit: Visit): Promise<View> {
  const { client, saleId, session } = visit;
  const reservationId = session.holds[saleId];
  if (reservationId === undefined) return look(visit);
  const params = { path: { saleId, reservationId }, query: { userId: session.buyer } };
  const given = await asked(client.DELETE('/sales/{saleId}/reservations/{reservationId}', { params }));
  // Paid in the meantime: the view says so better than a refusal.
  const refused = 'refused' in given && given.refused.code !== 'already_paid' ? given.refused : null;
  return look(visit, refused);
}

const html = (reply: FastifyReply, page: string) => reply.type('text/html; charset=utf-8').send(page);
