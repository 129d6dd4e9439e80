// The rush as a k6 script: 20,000 buyers press once each, 100 units, and the thresholds are the promise: exactly the
// units are won, nobody gets an answer that is not in the contract, and 99 of 100 answers come in time.
//
//   k6 run -e URL=http://127.0.0.1:3000 -e SERVICE_TOKEN=... -e ADMIN_TOKEN=... bench/k6/rush.js
//
// Also BUYERS, UNITS, VUS (buyers at the same moment), P99_MS. A sale of its own is created before and ended afterwards.
/* global __ENV */
import exec from 'k6/execution';
import http from 'k6/http';
import { check } from 'k6';
import { Counter } from 'k6/metrics';

const url = (__ENV.URL || 'http://127.0.0.1:3000').replace(/\/+$/, '');
const buyers = Number(__ENV.BUYERS || 20000);
const units = Number(__ENV.UNITS || 100);
const p99 = Number(__ENV.P99_MS || 1000);

const won = new Counter('won');
const soldOut = new Counter('sold_out');
const unexpected = new Counter('unexpected');

// 409 is the answer that most buyers get: it is no failure.
http.setResponseCallback(http.expectedStatuses(200, 201, 202, 409));

/** @type {import('k6/options').Options} */
export const options = {
  scenarios: {
    rush: { executor: 'shared-iterations', vus: Number(__ENV.VUS || 500), iterations: buyers, maxDuration: '5m' },
  },
  thresholds: {
    won: [`count==${Math.min(units, buyers)}`],
    sold_out: [`count==${Math.max(0, buyers - units)}`],
    unexpected: ['count==0'],
    http_req_failed: ['rate==0'],
    'http_req_duration{name:reserve}': [`p(99)<${p99}`],
  },
};

/** @param {string} token */
const bearer = (token) => ({ authorization: `Bearer ${token}`, 'content-type': 'application/json' });

/** Creates the sale. What it returns is given to every buyer. */
export function setup() {
  unexpected.add(0); // so that there is something to hold the threshold against
  const saleId = `k6-${Date.now()}`;
  const now = Date.now();
  const settings = {
    name: 'k6 rush',
    total: units,
    startsAt: new Date(now - 60000).toISOString(),
    endsAt: new Date(now + 3600000).toISOString(),
    holdSeconds: 600,
    maxPerReservation: 1,
    price: { amount: 49900, currency: 'EUR' },
  };
  const reply = http.put(`${url}/admin/sales/${saleId}`, JSON.stringify(settings), {
    headers: bearer(__ENV.ADMIN_TOKEN || ''),
  });
  if (reply.status !== 201) throw new Error(`the sale was not created: ${reply.status} ${String(reply.body)}`);
  return { saleId };
}

/**
 * One buyer, who presses once.
 * @param {{ saleId: string }} data
 */
export default function buyer({ saleId }) {
  const userId = `buyer-${exec.scenario.iterationInTest}`;
  const reply = http.post(`${url}/sales/${saleId}/reserve`, JSON.stringify({ userId }), {
    headers: bearer(__ENV.SERVICE_TOKEN || ''),
    tags: { name: 'reserve' },
  });
  const code = reply.status === 202 ? reply.json('outcome') : reply.status === 409 ? reply.json('code') : undefined;
  if (code === 'ok') won.add(1);
  else if (code === 'sold_out') soldOut.add(1);
  else unexpected.add(1);
  check(reply, {
    'won or sold out': () => code === 'ok' || code === 'sold_out',
    'a winner is told what was won': () => code !== 'ok' || reply.json('userId') === userId,
  });
}

/**
 * Ends the sale: its holds expire by themselves.
 * @param {{ saleId: string }} data
 */
export function teardown({ saleId }) {
  http.post(`${url}/admin/sales/${saleId}/end`, null, { headers: bearer(__ENV.ADMIN_TOKEN || '') });
}
