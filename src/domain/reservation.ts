/**
 * A reservation on its way: the hold that a winner has at the gate, the message that carries it, the order it becomes.
 * Pure: no I/O. Times are epoch milliseconds, amounts are minor units.
 */
import { z } from 'zod';

/** 1 to 128 visible ASCII characters. Anything else is refused before the gate. */
export const UserId = z.string().regex(/^[\x21-\x7e]{1,128}$/);
export const SaleId = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);
export const ReservationId = z.uuid();
export const Currency = z.string().regex(/^[A-Z]{3}$/);

/** The largest amount that a JavaScript number, a Lua number and a bigint all hold exactly. */
export const MAX_AMOUNT = Number.MAX_SAFE_INTEGER;

/** What was promised to a winner. Fixed at the gate; nothing that is changed later touches it. */
export const Hold = z.strictObject({
  reservationId: ReservationId,
  saleId: SaleId,
  userId: UserId,
  qty: z.int().min(1),
  amount: z.int().min(0).max(MAX_AMOUNT),
  currency: Currency,
  reservedAt: z.int().min(0),
  expiresAt: z.int().min(0),
});
export type Hold = z.infer<typeof Hold>;

/** Status of an order in the ledger. QUEUED is what a buyer is told of a hold that has no order yet. */
export const OrderStatus = z.enum(['PENDING_PAYMENT', 'PAID', 'EXPIRED', 'CANCELLED', 'REJECTED', 'REFUNDED']);
export type OrderStatus = z.infer<typeof OrderStatus>;
export const ReservationStatus = z.enum(['QUEUED', ...OrderStatus.options]);

/** Why an order is REJECTED or CANCELLED. */
export const OrderReason = z.enum(['no_room', 'duplicate_buyer', 'by_buyer', 'payment_canceled']);
export type OrderReason = z.infer<typeof OrderReason>;

/**
 * What an order that has ended still needs at the gate: its units given back, its hold forfeited, or nothing. The units
 * of a refunded order may have left the sale: then the gate must know of the smaller total before it releases them, or
 * it would sell what is gone.
 */
export type Duty = 'release' | 'forfeit' | 'release_after_settings';

export function duty(status: OrderStatus): Duty | undefined {
  switch (status) {
    case 'EXPIRED':
    case 'CANCELLED':
      return 'release';
    case 'REJECTED':
      return 'forfeit';
    case 'REFUNDED':
      return 'release_after_settings';
    case 'PENDING_PAYMENT':
    case 'PAID':
      return undefined;
  }
}

/** The hold as the gate keeps it: reservationId|qty|reservedAt|expiresAt|amount|currency. */
export function formatHold(hold: Hold): string {
  return [hold.reservationId, hold.qty, hold.reservedAt, hold.expiresAt, hold.amount, hold.currency].join('|');
}

const HOLD = /^([^|]{36})\|([1-9]\d*)\|(\d+)\|(\d+)\|(\d+)\|([A-Z]{3})$/;

/** @throws {Error} when the text is not a hold: the gate was written by something else */
export function parseHold(saleId: string, userId: string, text: string): Hold {
  const [, reservationId = '', qty, reservedAt, expiresAt, amount, currency = ''] = HOLD.exec(text) ?? [];
  const hold = {
    reservationId,
    saleId,
    userId,
    qty: Number(qty),
    amount: Number(amount),
    currency,
    reservedAt: Number(reservedAt),
    expiresAt: Number(expiresAt),
  };
  if (![hold.qty, hold.amount, hold.reservedAt, hold.expiresAt].every(Number.isSafeInteger)) {
    throw new Error(`the gate of sale ${saleId} has a hold that cannot be read: ${text}`);
  }
  return hold;
}
