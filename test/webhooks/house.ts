/** What the tests of webhooks share: a receiver that is a real HTTP server and trusts no signature, and the way to it. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { putEndpoint } from '../../src/ledger/webhooks.ts';
import { WebhookEventType } from '../../src/domain/webhook.ts';
import { courierOptions } from '../../src/wiring.ts';
import { startCourier, type CourierOptions } from '../../src/webhooks/courier.ts';
import { createPoster, type PosterOptions } from '../../src/webhooks/post.ts';
import { openHouse as openPlainHouse, until, type House } from '../ledger/house.ts';

export { until, type House };

export type Event = { type: string; timestamp: string; data: Record<string, unknown> };
/** A call that came: `event` is what the library made of it with the receiver's secret. */
export type Call = { id: string; event: Event; signatures: string[]; body: string };
type Answer = (call: Call, response: ServerResponse) => void;

export const ok: Answer = (_, response) => void response.writeHead(200).end('thanks');
export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (_, response) =>
    void response.writeHead(code, headers).end(`a ${code} of the tests`);
/** Keeps everybody waiting. */
export const silent: Answer = () => undefined;

export type Receiver = {
  url: string;
  calls: Call[];
  /** What a call was refused for: a signature that does not fit. */
  refused: string[];
  /** Calls that are not answered yet, and the most that there ever were at once. */
  busy: { now: number; most: number };
  answer: Answer;
  secret: string;
  close: () => Promise<void>;
};

/** @param port that of a receiver that was closed, to be there again */
export async function openReceiver(port = 0): Promise<Receiver> {
  const receiver: Receiver = {
    ...{ url: '', calls: [], refused: [], busy: { now: 0, most: 0 }, answer: ok, secret: '' },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  const server = createServer((request, response) => void receive(receiver, request, response));
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return receiver;
}

async function receive(receiver: Receiver, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { busy } = receiver;
  busy.most = Math.max(busy.most, (busy.now += 1));
  response.once('close', () => (busy.now -= 1));
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString('utf8');
  const headers = request.headers as Record<string, string>;
  try {
    const event = new Webhook(receiver.secret).verify(body, headers) as Event;
    const { 'webhook-id': id = '', 'webhook-signature': signatures = '' } = headers;
    const call = { id, event, body, signatures: signatures.split(' ') };
    receiver.calls.push(call);
    receiver.answer(call, response);
  } catch (error) {
    receiver.refused.push(String(error));
    response.writeHead(401).end();
  }
}

export const openHouse = (env: Record<string, string> = {}): Promise<House> =>
  openPlainHouse({ env: { WEBHOOKS_ALLOW_PRIVATE: 'true', KEEPER_INTERVAL_MS: '20', ...env } });

/** An endpoint of the shop at this receiver, for all events unless others are named. */
export async function endpointAt(
  { pool }: Pick<House, 'pool'>,
  endpointId: string,
  receiver: Pick<Receiver, 'url' | 'secret'>,
  events: WebhookEventType[] = WebhookEventType.options,
): Promise<void> {
  const put = await putEndpoint(pool, endpointId, { url: receiver.url, events, active: true });
  if (put?.secret !== undefined) receiver.secret = put.secret;
}

/** A courier of a keeper's own: several on one house are several keepers. */
export function courier(
  { pool, stores, config }: Pick<House, 'pool' | 'stores' | 'config'>,
  but: Partial<CourierOptions> & Partial<PosterOptions> = {},
) {
  const options = { ...courierOptions(config), timeoutMs: 10_000, ...but };
  const poster = createPoster({ allowPrivate: config.WEBHOOKS_ALLOW_PRIVATE, ...options });
  const { stop } = startCourier({ pool, log: stores.log, poster }, options);
  return {
    stop: async () => {
      await stop();
      await poster.close();
    },
  };
}

export type Row = {
  endpoint: string;
  eventId: string;
  type: string;
  status: string;
  attempts: number;
  lastStatus: number | null;
  lastAnswer: string | null;
  lastError: string | null;
  /** Seconds until the next attempt. */
  pause: number;
  claimed: boolean;
};

/** The outbox as it is, in the order in which it was written. */
export async function outbox({ db }: Pick<House, 'db'>): Promise<Row[]> {
  const { rows } = await db.query<Row>(`
    select endpoint_id as endpoint, event_id as "eventId", type, status, attempts, last_status as "lastStatus",
      last_answer as "lastAnswer", last_error as "lastError", claimed_until is not null as claimed,
      extract(epoch from next_attempt_at - d.updated_at)::float8 as pause
    from webhook_deliveries d left join webhook_endpoints using (endpoint_key) order by delivery_no`);
  return rows;
}

/** Lets time pass for the outbox: until the next attempt, until claims end, until an endpoint may be called again. */
export async function letTimePass({ db }: Pick<House, 'db'>, ms: number): Promise<void> {
  const back = (column: string) => `${column} = ${column} - ${ms} * interval '1 ms'`;
  await db.query(`update webhook_deliveries set ${['next_attempt_at', 'claimed_until', 'updated_at'].map(back).join(', ')};
    update webhook_endpoints set ${back('hold_until')}`);
}
