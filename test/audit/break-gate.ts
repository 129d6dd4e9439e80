/** Ways to break what the checks of the gate check. */
import type { Mutation } from './mutation.ts';
import { HOLD_MS, hold, id, key, type Order, order, PRICE, reservedAt, young } from './sound.ts';

const LATE = reservedAt - 2 * HOLD_MS;
const [HELD, STOCK, SALE, HOLDS, BUYERS] = ['held', key('stock'), key('sale'), key('holds'), key('buyers')];

/** Takes units for a hold out of the stock, so that the gate's figures stay right. */
const take = (user: string, of: Pick<Order, 'id' | 'qty'>, at = reservedAt) => [
  ...[
    ['HSET', HOLDS, user, hold(of, { at })],
    ['SADD', BUYERS, user],
  ],
  ...[
    ['HINCRBY', SALE, HELD, of.qty],
    ['DECRBY', STOCK, of.qty],
  ],
];
/** Gives a hold's units back, so that the gate's figures stay right. */
const giveBack = (user: string, qty: number) => [
  ...[
    ['HDEL', HOLDS, user],
    ['SREM', BUYERS, user],
    ['HINCRBY', SALE, HELD, -qty],
    ['INCRBY', STOCK, qty],
  ],
];

export const ofGate: Mutation[] = [
  { check: 'gate_conserves', does: 'a unit comes from nowhere', redis: [['INCR', STOCK]], subject: 'live' },
  {
    check: 'gate_conserves',
    does: 'more is forfeited back than there was',
    redis: [
      ['HINCRBY', SALE, 'forfeited', -2],
      ['INCRBY', STOCK, 2],
    ],
    subject: 'live',
  },
  {
    check: 'gate_conserves',
    does: 'a figure is no number',
    redis: [['HSET', SALE, 'forfeited', '1.0']],
    subject: 'live',
  },
  {
    check: 'gate_total_is_ledger_total',
    does: 'the gate grows and the ledger does not',
    redis: [
      ['HINCRBY', SALE, 'total', 1],
      ['INCR', STOCK],
    ],
    subject: 'live',
  },
  {
    check: 'gate_settings_applied',
    does: 'the gate has not heard of new settings',
    sql: `update sales set settings = 2 where sale_id = 'live'`,
    subject: 'live',
  },
  ...['state paused', 'holdSeconds 3601', 'maxPerReservation 5', 'amount 1', 'startsAt 1', 'endsAt 1'].map((field) => ({
    check: 'gate_settings_same',
    does: `the gate has ${field}`,
    redis: [['HSET', SALE, ...field.split(' ')]],
    subject: 'live',
  })),
  {
    check: 'gate_token_was_drawn',
    does: 'the gate has a token that the ledger never gave out',
    redis: [['HSET', SALE, 'token', 6]],
    subject: 'live',
  },
  { check: 'gate_keys_do_not_expire', does: 'a key will expire', redis: [['EXPIRE', BUYERS, 1000]], subject: BUYERS },
  {
    check: 'held_is_sum_of_holds',
    does: 'a unit is held by nobody',
    redis: [
      ['HINCRBY', SALE, HELD, 1],
      ['DECR', STOCK],
    ],
    subject: 'live',
  },
  { check: 'buyers_are_holders', does: 'a buyer has a receipt only', redis: [['SADD', BUYERS, 'zoe']], subject: 'zoe' },
  { check: 'buyers_are_holders', does: 'a buyer has no receipt', redis: [['SREM', BUYERS, 'bob']], subject: 'bob' },
  {
    check: 'marked_are_holders',
    does: 'a mark is of no hold',
    redis: [['ZADD', key('unqueued'), 1, 'zoe']],
    subject: 'zoe',
  },
  ...[
    hold({ id: id(10), qty: 0 }),
    hold({ id: 'no-uuid', qty: 1 }),
    hold(young, { expires: reservedAt }),
    `${hold(young)}|`,
  ].map((text) => ({
    check: 'hold_well_formed',
    does: `a hold is ${text}`,
    redis: [
      ['HSET', HOLDS, young.user, text],
      ['HINCRBY', SALE, HELD, -1],
      ['INCR', STOCK],
    ],
    subject: young.user,
  })),
  { check: 'live_order_has_hold', does: 'the gate forgets a hold', redis: giveBack('ann', 2), subject: id(1) },
  {
    check: 'live_order_has_hold',
    does: 'the gate has another reservation of the buyer',
    redis: [['HSET', HOLDS, 'ann', hold({ id: id(30), qty: 2 })]],
    subject: id(1),
  },
  ...[
    hold({ id: id(1), qty: 2 }, { amount: 999 }),
    hold({ id: id(1), qty: 2 }, { expires: reservedAt + HOLD_MS + 1 }),
    hold({ id: id(1), qty: 2 }, { at: reservedAt - 1, expires: reservedAt + HOLD_MS }),
    hold({ id: id(1), qty: 2 }).replace('EUR', 'USD'),
  ].map((text) => ({
    check: 'hold_matches_order',
    does: `a live order’s hold is ${text}`,
    redis: [['HSET', HOLDS, 'ann', text]],
    subject: id(1),
  })),
  {
    check: 'hold_matches_order',
    does: 'a hold has more units than its order',
    redis: [
      ['HSET', HOLDS, 'bob', hold({ id: id(2), qty: 2 }, { amount: PRICE })],
      ['HINCRBY', SALE, HELD, 1],
      ['DECR', STOCK],
    ],
    subject: id(2),
  },
  {
    check: 'hold_has_order',
    does: 'a hold has been on its way for too long',
    redis: [['HSET', HOLDS, young.user, hold(young, { at: LATE })]],
    subject: young.user,
  },
  {
    check: 'hold_has_order',
    does: 'a hold is from the future',
    redis: [['HSET', HOLDS, young.user, hold(young, { at: Date.now() + HOLD_MS })]],
    subject: young.user,
  },
  {
    check: 'hold_has_order',
    does: 'a hold is another buyer’s',
    redis: take('zoe', { id: id(2), qty: 1 }),
    subject: 'zoe',
  },
  {
    check: 'hold_has_order',
    does: 'a hold is of another sale',
    redis: take('zoe', { id: id(9), qty: 1 }),
    subject: 'zoe',
  },
  { check: 'reservation_held_once', does: 'two buyers hold the same', redis: take('zoe', young), subject: young.id },
  ...[order.expired, order.cancelled, order.early, order.refused].map((one) => ({
    check: 'finished_order_holds_nothing',
    does: `the order of ${one.user}, which is ${one.status}, still holds`,
    redis: take(one.user, one),
    subject: one.id,
  })),
  {
    check: 'closed_sale_left_gate',
    does: 'a closed sale has a key',
    redis: [['SET', key('stock', 'closed'), 3]],
    subject: 'closed',
  },
  {
    check: 'gate_key_has_sale',
    does: 'the gate has a sale of its own',
    redis: [['SET', key('stock', 'gone'), 3]],
    subject: 'gone',
  },
];
