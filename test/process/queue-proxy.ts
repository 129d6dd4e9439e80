/** A proxy in front of the queue's HTTP interface: it delays, and rewrites replies, as a bad day of the queue would. */
import { createServer, request, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

export type QueueProxy = {
  /** The settings of a client that goes through it. */
  env: Record<string, string>;
  /** How many calls of an action have come, e.g. SendMessageBatch. */
  seen: (action: string) => number;
  /** Milliseconds before a call of this action is passed on. */
  delay: Map<string, number>;
  /** Changes a reply of this action. */
  rewrite: Map<string, (reply: Record<string, unknown>, call: Record<string, unknown>) => Record<string, unknown>>;
  close: () => Promise<void>;
};

/** @param env of the queue behind it */
export async function queueProxy(env: Record<string, string>): Promise<QueueProxy> {
  const target = new URL(env['SQS_ENDPOINT'] ?? '');
  const counts = new Map<string, number>();
  const delay: QueueProxy['delay'] = new Map();
  const rewrite: QueueProxy['rewrite'] = new Map();
  const server: Server = createServer((incoming, outgoing) => {
    const action = String(incoming.headers['x-amz-target']).split('.').at(-1) ?? '';
    counts.set(action, (counts.get(action) ?? 0) + 1);
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const call = Buffer.concat(chunks);
      setTimeout(
        () => {
          const { hostname, port } = target;
          const { method, url: path, headers } = incoming;
          const passed = request({ hostname, port, method, path, headers }, (answer) => {
            const parts: Buffer[] = [];
            answer.on('data', (part: Buffer) => parts.push(part));
            answer.on('end', () => {
              const change = rewrite.get(action);
              const body = Buffer.concat(parts);
              const text = change ? JSON.stringify(change(parse(body), parse(call))) : body;
              const { 'content-length': _, 'transfer-encoding': __, ...kept } = answer.headers;
              outgoing.writeHead(answer.statusCode ?? 502, { ...kept, 'content-length': Buffer.byteLength(text) });
              outgoing.end(text);
            });
          });
          passed.on('error', () => outgoing.destroy());
          outgoing.on('close', () => passed.destroy());
          passed.end(call);
        },
        delay.get(action) ?? 0,
      );
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const own = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const queueUrl = new URL(new URL(env['SQS_QUEUE_URL'] ?? '').pathname, own).href;
  return {
    env: { ...env, SQS_ENDPOINT: own, SQS_QUEUE_URL: queueUrl },
    seen: (action) => counts.get(action) ?? 0,
    delay,
    rewrite,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const parse = (body: Buffer) => JSON.parse(body.toString('utf8') || '{}') as Record<string, unknown>;
