/** The metrics port: /metrics, and /livez and /readyz for processes that have no API. */
import Fastify, { LogController, type FastifyInstance } from 'fastify';
import { sendProblem } from './problem.ts';

export type MetricsSource = {
  contentType: string;
  metrics: () => Promise<string>;
  /** Whether this process does its work now. */
  ready: () => boolean;
};

export function buildMetricsApp({ contentType, metrics, ready }: MetricsSource): FastifyInstance {
  const app = Fastify({ logController: new LogController({ disableRequestLogging: true }) });
  app.setNotFoundHandler((_request, reply) => sendProblem(reply, 'not_found'));
  app.get('/metrics', async (_request, reply) => reply.header('content-type', contentType).send(await metrics()));
  app.get('/livez', () => Promise.resolve({ status: 'ok' }));
  app.get('/readyz', (_request, reply) => {
    const status = ready() ? 'ok' : 'draining';
    return reply.code(status === 'ok' ? 200 : 503).send({ status });
  });
  return app;
}
