/** The operations room: `/ops` and all that its pages ask for. None of it is part of the API that others build upon. */
import cookie from '@fastify/cookie';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { limitByAddress } from '../admission.ts';
import type { Api } from '../app.ts';
import { FanOut } from '../fan-out.ts';
import { Problem } from '../problem.ts';
import { jsonSchema } from '../schemas.ts';
import { SaleId } from '../../domain/reservation.ts';
import { changeRoutes } from './changes.ts';
import { EVERY_MS, Figures } from './figures.ts';
import { listRoutes } from './lists.ts';
import { pageRoutes } from './pages.ts';
import type { Room } from './room.ts';
import { Sessions } from './session.ts';
import { toolRoutes, Tools } from './tools.ts';

/** Tries to sign in, per address and minute; each process counts for itself. */
const TRIES = 10;
const SignIn = z.strictObject({ token: z.string().min(1).max(1024) });
const EventsQuery = z.strictObject({ sale: SaleId });

export type Ops = { api: Api; room: Room; sessions: Sessions; figures: Figures; tools: Tools };

/** Nothing at all without an admin token, or with OPS_ROOM=false. */
export async function opsRoutes(scope: FastifyInstance, api: Api, room: Room): Promise<void> {
  await scope.register(cookie);
  // Whatever is told here is for whoever is signed in now.
  scope.addHook('onRequest', (_request, reply, done) => {
    void reply.header('cache-control', 'no-store');
    done();
  });
  const sessions = new Sessions(api.config);
  const ops: Ops = { api, room, sessions, figures: new Figures(api, room), tools: new Tools(api, room) };
  scope.addHook('onClose', (_app, done) => {
    room.close();
    done();
  });
  sessionRoutes(scope, ops);
  pageRoutes(scope, ops);
  listRoutes(scope, ops);
  changeRoutes(scope, ops);
  toolRoutes(scope, ops);
  eventRoute(scope, ops);
}

function sessionRoutes(scope: FastifyInstance, { api, room, sessions }: Ops): void {
  const counted = limitByAddress(scope, TRIES, 60_000);
  scope.post<{ Body: z.infer<typeof SignIn> }>(
    '/ops/session',
    { schema: { hide: true, body: jsonSchema(SignIn, 'input') }, preHandler: counted },
    async (request, reply) => {
      await sessions.begin(request, reply, request.body.token);
      api.stores.log.info({ address: request.ip }, 'somebody signed in to the operations room');
      return reply.code(204).send();
    },
  );
  scope.delete('/ops/session', { schema: { hide: true } }, async (request, reply) => {
    await sessions.actor(request);
    sessions.end(request, reply);
    return reply.code(204).send();
  });
  scope.get('/ops/session', { schema: { hide: true } }, async (request) => {
    const { csrf, expiresAt } = await sessions.must(request);
    return { csrf, expiresAt: new Date(expiresAt).toISOString(), rush: room.rush !== undefined };
  });
}

/** One reading per second and process, however many watch; the stream ends with the session. */
function eventRoute(scope: FastifyInstance, { api, sessions, figures }: Ops): void {
  const fanOut = new FanOut({
    name: 'operations room',
    everyMs: EVERY_MS,
    read: (saleIds) => figures.read(saleIds),
    waitsFor: [],
    log: api.stores.log,
  });
  scope.get<{ Querystring: z.infer<typeof EventsQuery> }>(
    '/ops/events',
    { schema: { hide: true, querystring: jsonSchema(EventsQuery, 'input') } },
    async (request, reply) => {
      const session = await sessions.must(request);
      const { sale } = request.query;
      if (!(await api.directory.find(sale))) throw new Problem('sale_not_found');
      await fanOut.listen(sale, undefined, () => {
        const stream = api.streams.open('ops', reply);
        const over = setTimeout(() => stream.end(), session.expiresAt - Date.now()).unref();
        stream.onClose(() => clearTimeout(over));
        return stream;
      });
      return reply;
    },
  );
}
