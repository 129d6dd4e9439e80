/** GET /livez: the process. GET /readyz: ready to take traffic; a shared dependency that is away is told, not fatal. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { queueDepth } from '../queue/depth.ts';
import type { Api } from './app.ts';
import { Health, jsonSchema, Readiness } from './schemas.ts';

export function healthRoutes(app: FastifyInstance, { stores, sqs, config, life }: Api): void {
  const readiness = jsonSchema(Readiness);
  app.get(
    '/livez',
    {
      schema: {
        tags: ['health'],
        operationId: 'live',
        summary: 'The process answers',
        'x-told': { 200: { description: 'It does' } },
        response: { 200: jsonSchema(Health) },
      },
    },
    () => Promise.resolve({ status: 'ok' }),
  );
  app.get(
    '/readyz',
    {
      schema: {
        tags: ['health'],
        operationId: 'ready',
        summary: 'Ready to take traffic; the dependencies’ state in the body',
        'x-told': {
          200: { description: 'Ready. A shared store that is away is told, and does not make a process unready' },
          503: { description: 'Draining: send no more' },
        },
        response: { 200: readiness, 503: readiness },
      },
    },
    async (_request, reply) => {
      const late = sleep(config.REQUEST_DEADLINE_MS, { ok: false, detail: 'no answer in time' }, { ref: false });
      const [redis, postgres, queue] = await Promise.all(
        [
          stores.gate.check(),
          stores.pool.query('select 1'),
          queueDepth(sqs, config.SQS_QUEUE_URL, config.QUEUE_TIMEOUT_MS),
        ].map((check) => Promise.race([state(check), late])),
      );
      const status = life.draining ? 'draining' : 'ok';
      return reply.code(status === 'ok' ? 200 : 503).send({ status, dependencies: { redis, postgres, queue } });
    },
  );
}

async function state(check: Promise<unknown>) {
  try {
    await check;
    return { ok: true };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : String(error) };
  }
}
