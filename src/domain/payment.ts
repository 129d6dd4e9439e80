/** What a payment provider reports, in our own words. Pure: no I/O. */
import { z } from 'zod';
import { MAX_AMOUNT } from './reservation.ts';

const Id = z.string().regex(/^[\x21-\x7e]{1,255}$/);

/** The types that mean something to us; any other is accepted and ignored. */
export const PaymentEventType = z.enum([
  'payment.succeeded',
  'payment.failed',
  'payment.canceled',
  'refund.succeeded',
  'refund.failed',
]);
export type PaymentEventType = z.infer<typeof PaymentEventType>;

/** Any event at all: what it must have to be told apart. */
export const AnyEvent = z.looseObject({ type: z.string().min(1).max(255) });

/**
 * An event that concerns money. `reservationId` is any string on purpose: one that is no reservation's still came with
 * money, and is given back rather than refused.
 */
export const PaymentEvent = z.looseObject({
  type: PaymentEventType,
  timestamp: z.string(),
  data: z.looseObject({
    paymentId: Id,
    reservationId: z.string().min(1).max(255),
    amount: z.int().min(0).max(MAX_AMOUNT),
    currency: z
      .string()
      .regex(/^[A-Za-z]{3}$/)
      .transform((code) => code.toUpperCase()),
  }),
});

/** A captured payment. Amount in minor units. */
export type Payment = { paymentId: string; reservationId: string; amount: number; currency: string };
export type KnownEvent = Payment & { eventId: string; type: PaymentEventType };

/** Why money that paid nothing is owed back. */
type OwedReason =
  'expired' | 'cancelled' | 'rejected' | 'already_paid' | 'amount_mismatch' | 'unknown_reservation' | 'refunded';
/** Why the money of a PAID order is given back: the shop asked us to, or it was made at the provider without us. */
export type ShopReason = 'by_shop' | 'at_provider';
export type RefundReason = OwedReason | ShopReason;

/** Status of a refund: PENDING until the provider took it, SUBMITTED until it reports, then final. */
export type RefundStatus = 'PENDING' | 'SUBMITTED' | 'SUCCEEDED' | 'FAILED';
