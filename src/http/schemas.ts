/** The HTTP interface in zod: the one source of validation (without coercion), types and OpenAPI. */
import { z } from 'zod';
import { Currency, OrderReason, OrderStatus, ReservationStatus, SaleId, UserId } from '../domain/reservation.ts';
import { PaymentEvent } from '../domain/payment.ts';
import { SalePhase } from '../domain/sale.ts';
import { EndpointId } from '../domain/webhook.ts';
import { journalActions } from '../ledger/journal.ts';
import { examples, paymentEvent } from './examples.ts';
import { problems } from './problem.ts';

const Time = z.iso.datetime();
const Amount = z.int().min(0);
const Money = { amount: Amount, currency: Currency };

export const SaleParams = z.strictObject({ saleId: SaleId });
export const ReservationParams = z.strictObject({ saleId: SaleId, reservationId: z.string().min(1).max(64) });
export const BuyerQuery = z.strictObject({ userId: UserId });
export const ReserveBody = z.strictObject({ userId: UserId, qty: z.int().min(1).default(1) });

export const Reserved = z
  .object({
    outcome: z.enum(['ok', 'dup']),
    reservationId: z.uuid(),
    saleId: SaleId,
    userId: UserId,
    qty: z.int(),
    ...Money,
    reservedAt: Time,
    expiresAt: Time,
  })
  .meta({ id: 'Reserved' });

export const Reservation = Reserved.omit({ outcome: true })
  .extend({
    status: ReservationStatus,
    reason: OrderReason.optional(),
    refund: z.enum(['PENDING', 'SUBMITTED', 'SUCCEEDED', 'FAILED']).optional(),
  })
  .meta({ id: 'Reservation' });

/** What became of the units of a REFUNDED order: true, they are for sale again; false, they left the sale. */
const unitsReturned = z.boolean().optional();
export const RefundBody = z.strictObject({ returnUnits: z.boolean() });
export const AdminReservation = Reservation.extend({ status: OrderStatus, unitsReturned }).meta({
  id: 'AdminReservation',
});

/** `expiresAt` is the reservation's: pay until then. */
export const CheckoutPage = z
  .object({ reservationId: z.uuid(), url: z.url(), ...Money, expiresAt: Time })
  .meta({ id: 'CheckoutPage' });

export const PublicSale = z
  .object({
    saleId: SaleId,
    name: z.string(),
    state: SalePhase,
    startsAt: Time,
    endsAt: Time,
    total: z.int(),
    holdSeconds: z.int(),
    maxPerReservation: z.int(),
    price: z.object(Money),
    serverTime: Time,
    unitsLeft: z.int().optional().meta({ description: 'not told when HIDE_UNITS_LEFT is set' }),
  })
  .meta({ id: 'Sale' });

export const AdminSale = PublicSale.omit({ unitsLeft: true, serverTime: true })
  .extend({ settings: z.int() })
  .meta({ id: 'AdminSale' });
export const AdminSales = z.object({ sales: z.array(AdminSale) }).meta({ id: 'AdminSales' });

/** Gate, queue and ledger side by side; a store that is away is null and named in `away`. */
export const SaleFigures = AdminSale.extend({
  gate: z
    .object({
      ...{ state: z.string(), stock: z.int(), held: z.int(), forfeited: z.int(), total: z.int(), settings: z.int() },
      ...{ unqueued: z.int(), generation: z.string(), version: z.int() },
    })
    .nullable(),
  queue: z.object({ waiting: z.int(), inFlight: z.int(), deadLetters: z.int().nullable() }).nullable(),
  ledger: z.object({ total: z.int(), sold: z.int(), byStatus: z.record(OrderStatus, z.int()) }),
  away: z.array(z.string()),
}).meta({ id: 'SaleFigures' });

export const OrdersQuery = z.strictObject({
  status: OrderStatus.default('PAID'),
  after: z
    .string()
    .regex(/^\d{1,19}\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    .optional(),
  limit: z
    .string()
    .regex(/^([1-9]\d{0,2}|1000)$/)
    .default('100'),
});
/** `next` is the cursor for the following page; null when this page is empty. Keep the last one to ask again later. */
export const Orders = z
  .object({ orders: z.array(AdminReservation), next: z.string().nullable() })
  .meta({ id: 'Orders' });

export const JournalQuery = z.strictObject({
  saleId: SaleId.optional(),
  after: z
    .string()
    .regex(/^\d{1,19}\.\d{1,19}$/)
    .optional(),
  limit: OrdersQuery.shape.limit,
});
/** What it was and what it became: settings of a sale or an endpoint, a refunded order, what an audit or a rush found. */
const Facts = z.record(z.string(), z.unknown()).optional();
export const Journal = z
  .object({
    entries: z.array(
      z.object({
        entryId: z.int(),
        at: Time,
        who: z.enum(['token', 'session', 'command']),
        session: z.string().optional(),
        requestId: z.string().optional(),
        action: z.enum(journalActions),
        /** What it is about: either of the two. */
        saleId: SaleId.optional(),
        endpointId: EndpointId.optional(),
        outcome: z.enum(['done', 'refused', 'failed']),
        reason: z.string().optional(),
        before: Facts,
        after: Facts,
      }),
    ),
    next: z.string().nullable(),
  })
  .meta({ id: 'Journal' });

export const Received = z
  .object({ state: z.enum(['applied', 'parked', 'ignored']), outcome: z.string() })
  .meta({ id: 'Received' });
const Reachable = z.object({ ok: z.boolean(), detail: z.string().optional() });
export const Health = z.object({ status: z.literal(['ok', 'starting', 'draining']) }).meta({ id: 'Health' });
export const Readiness = Health.extend({
  dependencies: z.object({ redis: Reachable, postgres: Reachable, queue: Reachable }),
}).meta({ id: 'Readiness' });

export const ProblemDocument = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.enum(Object.keys(problems) as [keyof typeof problems]),
    detail: z.string().optional(),
    mayReturn: z
      .boolean()
      .optional()
      .meta({ description: 'with sold_out: false once every unit is paid; Retry-After tells when one may come back' }),
    startsAt: Time.optional().meta({ description: 'with not_started' }),
    maxPerReservation: z.int().optional().meta({ description: 'with qty_over_limit' }),
  })
  .meta({ id: 'Problem' });

/** In an event stream, in place of what cannot be told now. */
export const Unavailable = z
  .object({ code: z.enum(Object.keys(problems) as [keyof typeof problems]) })
  .meta({ id: 'Unavailable' });

/** A zod schema as JSON Schema, for Fastify's compiled validators and for OpenAPI. */
export function jsonSchema(schema: z.ZodType, io: 'input' | 'output' = 'output'): object {
  const { $schema: _, id: __, ...rest } = z.toJSONSchema(schema, { io, target: 'draft-7', reused: 'inline' });
  return rest;
}

/** The schemas that have a name, as OpenAPI's components: what the routes' schemas refer to. */
export function namedSchemas(): Record<string, object> {
  const { schemas } = z.toJSONSchema(z.globalRegistry, {
    uri: (id) => `#/components/schemas/${id}`,
    // A page of pattern says no more to a reader than its format.
    override: ({ jsonSchema: made }) => {
      if (made.format !== undefined) delete made.pattern;
    },
  });
  const named = Object.entries(schemas).map(([id, { $schema: _, $id: __, ...rest }]): [string, object] => {
    const example = examples[id];
    return [id, example ? { ...rest, examples: [example] } : rest];
  });
  return Object.fromEntries(named);
}

/** An event as it is sent; which members matter is decided after its signature is checked, and not by this schema. */
export function paymentEventSchema(): object {
  return { ...jsonSchema(PaymentEvent, 'input'), examples: [paymentEvent()] };
}
