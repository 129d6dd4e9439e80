/** What the routes of event streams have in common: their schema, and so what the document says of them. */
import type { FastifyRequest, FastifySchema } from 'fastify';
import { z } from 'zod';
import { jsonSchema } from './schemas.ts';

const LastEvent = z.looseObject({
  'last-event-id': z.string().optional().meta({
    description: 'The `id` of the last event that was seen: nothing is told until something has changed since',
  }),
});

/** Of the last event that the listener saw; undefined for one who has seen none. */
export function lastEventId(request: FastifyRequest): string | undefined {
  const { 'last-event-id': id } = request.headers as z.infer<typeof LastEvent>;
  return id === '' ? undefined : id;
}

/** @param event the name of the events; @param schema of the document, which their data keeps to */
export function eventRoute(event: string, schema: string, own: FastifySchema) {
  return {
    exposeHeadRoute: false, // it would have no end
    schema: {
      tags: ['buyers'],
      ...own,
      headers: jsonSchema(LastEvent),
      'x-told': {
        200: {
          description:
            `A stream of events. The data of \`${event}\` is a document as \`${schema}\` has it; its \`id\` is made from ` +
            'what it says, so that any process can go on from it. `unavailable` says with a `code` that it cannot be told ' +
            'now: the stream stays, and what is then is told when it can be',
          headers: ['Cache-Control' as const],
          events: { [event]: schema, unavailable: 'Unavailable' },
        },
        204: { description: 'Nothing will ever change after the event of `Last-Event-ID`: do not come back' },
      },
      response: { 200: { type: 'string' }, 204: { type: 'null' } },
    },
  };
}
