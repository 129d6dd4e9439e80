/** Reads what the ledger, the gate and the payment provider say of one sale, through their public and admin routes. */
import { z } from 'zod';
import { told, type Flashgate } from '../client/client.ts';
import type { JsonApi } from './http.ts';

const instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/**
 * The client's types are the API's promise; here it is checked. Members that are not named here are let through: the API
 * may tell more.
 */
const Order = z.object({
  reservationId: z.string(),
  saleId: z.string(),
  userId: z.string(),
  qty: z.int(),
  amount: z.int(),
  currency: z.string(),
  status: z.enum(['PENDING_PAYMENT', 'PAID', 'EXPIRED', 'CANCELLED', 'REJECTED', 'REFUNDED']),
  reason: z.string().nullish(),
  reservedAt: instant,
  expiresAt: instant,
});
const OrderPage = z.object({ orders: z.array(Order), next: z.string().nullish() });

/** `gate` is null when it is not loaded, or out of reach. */
const SaleView = z.object({
  gate: z.object({ stock: z.int(), held: z.int(), forfeited: z.int(), total: z.int() }).nullable(),
  ledger: z.object({ total: z.int(), sold: z.int() }),
});

const Payment = z.object({
  paymentId: z.string(),
  reservationId: z.string(),
  currency: z.string(),
  captured: z.int(),
  refunded: z.int(),
  deliveredAt: instant.nullable(),
});
const PaymentList = z.object({ payments: z.array(Payment) });

/** Times in epoch milliseconds, amounts in minor units. */
export type Order = z.output<typeof Order>;
export type Payment = z.output<typeof Payment>;
export type SaleView = z.output<typeof SaleView>;

const PAGE = 500;

/** PENDING_PAYMENT first: an order that ends while this reads is then seen twice, and never missed. */
const statuses = ['PENDING_PAYMENT', 'PAID', 'EXPIRED', 'CANCELLED', 'REJECTED', 'REFUNDED'] as const;

/**
 * All orders of the sale, by reservation id.
 * @throws {ProblemError | NoAnswer} or {z.ZodError} when the answer is another one
 */
export async function readOrders(admin: Flashgate, saleId: string): Promise<Map<string, Order>> {
  const orders = new Map<string, Order>();
  for (const status of statuses) {
    let after: string | undefined;
    do {
      const query = { status, limit: String(PAGE), ...(after !== undefined && { after }) };
      const asking = admin.GET('/admin/sales/{saleId}/orders', { params: { path: { saleId }, query } });
      const page = OrderPage.parse(await told(asking));
      for (const order of page.orders) orders.set(order.reservationId, order);
      after = page.next ?? undefined;
    } while (after !== undefined);
  }
  return orders;
}

/** Gate and ledger side by side. @throws as {@link readOrders} */
export async function readSale(admin: Flashgate, saleId: string): Promise<SaleView> {
  return SaleView.parse(await told(admin.GET('/admin/sales/{saleId}', { params: { path: { saleId } } })));
}

/** Every payment the provider knows, also of other sales. @throws {Unreachable | z.ZodError} */
export async function readPayments(provider: JsonApi): Promise<Payment[]> {
  return PaymentList.parse(await provider.must('GET', '/payments')).payments;
}
