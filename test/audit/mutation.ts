/** One way to break what a check of the audit checks. */
import { id, type Order } from './sound.ts';

export type Mutation = {
  check: string;
  does: string;
  sql?: string;
  redis?: (string | number)[][];
  /** Written with its journal. Stock is left alone: see `sql`. */
  orders?: Order[];
  /** Whom or what the check must name. */
  subject: string;
  /** Other checks that must turn red too. Every one that is not here must stay green. */
  alsoRed?: string[];
};

/** A payment with the event that told of it. */
export const payment = (name: string, n: number, amount: number, status: string) => `
  insert into payments (payment_id, reservation_id, amount, currency, status) values ('${name}', '${id(n)}', ${amount}, 'EUR', '${status}');
  insert into payment_events (event_id, type, payment_id, reservation_id, amount, currency, state, outcome)
  values ('event-of-${name}', 'payment.succeeded', '${name}', '${id(n)}', ${amount}, 'EUR', 'applied', 'paid');`;
