/** The queue message, version 1: a hold. Anything else is not ours and ends in the dead-letter queue. */
import type { MessageAttributeValue } from '@aws-sdk/client-sqs';
import { z } from 'zod';
import { Hold } from '../domain/reservation.ts';
import { CONTEXT_FIELDS, type Carrier } from '../span.ts';

const MessageV1 = Hold.extend({ v: z.literal(1) }).refine(({ expiresAt, reservedAt }) => expiresAt > reservedAt);

export function formatMessage(hold: Hold): string {
  return JSON.stringify({ v: 1, ...hold });
}

/** @throws {Error} that says what is wrong with it */
export function parseMessage(body: string | undefined): Hold {
  const { v: _, ...hold } = MessageV1.parse(JSON.parse(body ?? ''));
  return hold;
}

/** A trace's context as attributes of a message, two of the ten that SQS allows; an empty value it does not. */
export function contextAttributes(carrier: Carrier): Record<string, MessageAttributeValue> {
  const given = CONTEXT_FIELDS.map((name) => [name, carrier[name]] as const);
  return Object.fromEntries(
    given
      .filter(
        (field): field is [(typeof CONTEXT_FIELDS)[number], string] => typeof field[1] === 'string' && field[1] !== '',
      )
      .map(([name, value]) => [name, { DataType: 'String', StringValue: value }]),
  );
}

/** The context that came with a message; one that the keeper sent again has none. */
export function contextInAttributes(attributes: Record<string, MessageAttributeValue> | undefined): Carrier {
  return Object.fromEntries(CONTEXT_FIELDS.map((name) => [name, attributes?.[name]?.StringValue]));
}
