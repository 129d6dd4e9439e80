/** Ways to break what the checks of webhooks check. */
import type { Mutation } from './mutation.ts';
import { id } from './sound.ts';

const OVERDUE = `now() - interval '1 hour'`;
const of = (endpoint: string) =>
  `endpoint_key = (select endpoint_key from webhook_endpoints where endpoint_id = '${endpoint}')`;

export const ofWebhooks: Mutation[] = [
  {
    check: 'order_is_announced',
    does: 'an order was refused, and the shop was not to hear of it',
    sql: `delete from webhook_deliveries where event_id = '${id(7)}_rejected' and ${of('shop')}`,
    subject: `shop ${id(7)}`,
  },
  {
    check: 'order_is_announced',
    does: 'the shop was told of another order under this one’s id',
    sql: `update webhook_deliveries set payload = json_build_object('data', json_build_object('reservationId', '${id(8)}', 'status', 'REJECTED'))
           where event_id = '${id(7)}_rejected'`,
    subject: `down ${id(7)}`,
  },
  {
    check: 'order_is_announced',
    does: 'an endpoint wants to hear of paid orders, and was told of none',
    sql: `update webhook_endpoints set events = array['reservation.paid'] where endpoint_id = 'shop'`,
    subject: `shop ${id(2)}`,
  },
  {
    check: 'endpoint_is_served',
    does: 'nobody tries to send what is due',
    sql: `update webhook_deliveries set next_attempt_at = ${OVERDUE}, updated_at = ${OVERDUE} where ${of('down')}`,
    subject: 'down',
  },
  {
    check: 'endpoint_is_served',
    does: 'nobody has tried anything yet, though new events keep coming',
    sql: `update webhook_deliveries set attempts = 0, next_attempt_at = ${OVERDUE} where event_id = '${id(7)}_rejected' and ${of('down')};
          update webhook_deliveries set attempts = 0 where ${of('down')}`,
    subject: 'down',
  },
  {
    check: 'endpoint_is_served',
    does: 'a claim has ended long ago, and nobody took it up',
    sql: `update webhook_deliveries set next_attempt_at = ${OVERDUE}, updated_at = ${OVERDUE}, claimed_until = ${OVERDUE} where ${of('down')}`,
    subject: 'down',
  },
];
