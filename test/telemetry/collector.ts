/**
 * A collector that takes OTLP over HTTP and reads what it needs of it: protobuf's wire format
 * (https://protobuf.dev/programming-guides/encoding) and the fields of opentelemetry/proto/trace/v1/trace.proto.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export type Link = { traceId: string; spanId: string };
export type ReceivedSpan = Link & {
  service: string;
  parent: string;
  name: string;
  attributes: Record<string, string | number>;
  links: Link[];
};

type Field = { number: number; bytes: Buffer; value: number };

/** The fields of a message; `value` is a varint's, `bytes` what is length-delimited. */
function fields(message: Buffer): Field[] {
  const found: Field[] = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number(value);
    }
  };
  const take = (length: number) => message.subarray(at, (at += length));
  while (at < message.length) {
    const key = varint();
    const number = key >> 3;
    const none = Buffer.alloc(0);
    if ((key & 7) === 0) found.push({ number, bytes: none, value: varint() });
    else if ((key & 7) === 1) found.push({ number, bytes: take(8), value: 0 });
    else if ((key & 7) === 2) found.push({ number, bytes: take(varint()), value: 0 });
    else if ((key & 7) === 5) found.push({ number, bytes: take(4), value: 0 });
    else throw new Error(`wire type ${key & 7} is not used by OTLP`);
  }
  return found;
}
const all = (message: Field[], number: number) => message.filter((field) => field.number === number);
const bytesOf = (message: Field[], number: number) => all(message, number)[0]?.bytes ?? Buffer.alloc(0);
const hex = (message: Field[], number: number) => bytesOf(message, number).toString('hex');

function attributes(entries: Field[]): Record<string, string | number> {
  return Object.fromEntries(
    entries.map(({ bytes }) => {
      const entry = fields(bytes);
      const [value] = fields(bytesOf(entry, 2));
      return [bytesOf(entry, 1).toString(), value?.number === 1 ? value.bytes.toString() : (value?.value ?? 0)];
    }),
  );
}

const linkOf = (message: Field[]): Link => ({ traceId: hex(message, 1), spanId: hex(message, 2) });

function spansOf(body: Buffer): ReceivedSpan[] {
  return all(fields(body), 1).flatMap((resourceSpans) => {
    const parts = fields(resourceSpans.bytes);
    const service = attributes(all(fields(bytesOf(parts, 1)), 1))['service.name'];
    return all(parts, 2).flatMap((scopeSpans) =>
      all(fields(scopeSpans.bytes), 2).map(({ bytes }) => {
        const span = fields(bytes);
        return {
          ...linkOf(span),
          service: String(service),
          parent: hex(span, 4),
          name: bytesOf(span, 5).toString(),
          attributes: attributes(all(span, 9)),
          links: all(span, 13).map((link) => linkOf(fields(link.bytes))),
        };
      }),
    );
  });
}

export async function startCollector() {
  const spans: ReceivedSpan[] = [];
  const server = createServer((request, reply) => {
    void buffer(request).then((body) => {
      if (request.url !== '/v1/traces') reply.statusCode = 404;
      else spans.push(...spansOf(body));
      reply.end();
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    named: (name: string) => spans.filter((span) => span.name === name),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
