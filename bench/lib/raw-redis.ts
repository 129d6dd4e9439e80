/**
 * Script calls written before the clock starts and sent as they are, a fixed number under way: a client that costs
 * nothing, so that Redis is what is measured.
 */
import { connect } from 'node:net';
import { once } from 'node:events';

const LINE_END = Buffer.from('\r\n');
/** How an error begins; no script that is called here answers a text that begins like that. */
const ERROR = Buffer.from('\r\n-');

/** A command in Redis' protocol. */
export function encode(args: readonly (string | number)[]): Buffer {
  const parts = args.map((arg) => `$${Buffer.byteLength(String(arg))}\r\n${arg}\r\n`);
  return Buffer.from(`*${args.length}\r\n${parts.join('')}`);
}

/**
 * Sends the calls in order.
 * @param call the n-th call, encoded
 * @param marker what each reply contains exactly once
 * @returns seconds until the last reply was there
 * @throws {Error} when a reply is an error
 */
export async function sendAll(
  url: string,
  { calls, call, inFlight, marker }: { calls: number; call: (n: number) => Buffer; inFlight: number; marker: string },
): Promise<number> {
  const { hostname, port, pathname } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, 'connect');
  if (pathname.length > 1) socket.write(encode(['SELECT', pathname.slice(1)]));
  const wanted = Buffer.from(marker);
  /** Of what was read: as much as may be the beginning of a mark or of an error that the next part ends. */
  const kept = Math.max(wanted.length, ERROR.length) - 1;
  let rest: Buffer = LINE_END; // as if a reply had come before
  let [sent, answered] = [0, 0];
  const send = () => {
    for (; sent < calls && sent - answered < inFlight; sent += 1) socket.write(call(sent));
  };
  const started = performance.now();
  send();
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('data', (part: Buffer) => {
      const text = Buffer.concat([rest, part]);
      const error = text.indexOf(ERROR);
      if (error >= 0) reject(new Error(text.toString('latin1', error + ERROR.length, error + 200)));
      let from = 0;
      for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, from)) {
        answered += 1;
        from = at + wanted.length;
      }
      rest = text.subarray(Math.max(from, text.length - kept));
      if (answered === calls) resolve();
      else send();
    });
  });
  const seconds = (performance.now() - started) / 1000;
  socket.destroy();
  return seconds;
}
