/** Brings a hold into the queue, and only then takes its mark off. */
import { crashPoint } from '../crash.ts';
import type { Hold } from '../domain/reservation.ts';
import { inSpan, SpanKind } from '../span.ts';
import type { Stores } from './stores.ts';

/**
 * Resolves once the queue has the hold. The mark is taken off afterwards without waiting: one that stays because the
 * gate is away only means that the keeper sends the same message again, which is one order.
 * @param deadline by `performance.now()`
 * @throws {QueueUnavailable | Overloaded | TooLate}
 */
export async function enqueue(
  { gate, producer, log }: Pick<Stores, 'gate' | 'producer' | 'log'>,
  hold: Hold,
  deadline: number,
) {
  const attributes = { 'messaging.system': 'aws_sqs', 'messaging.operation.type': 'send' };
  await inSpan('enqueue', { kind: SpanKind.PRODUCER, attributes }, () => producer.send(hold, deadline));
  crashPoint('queue_has_it');
  gate.queued(hold.saleId, hold).catch((error: unknown) => {
    log.warn(
      { err: error, reservationId: hold.reservationId },
      'the hold is in the queue but its mark stays: the keeper will send it again',
    );
  });
}
