/**
 * One kept-alive HTTP/1.1 connection with one request under way at a time, made to cost less per request than any
 * server: the request is one string, the reply is looked at for its status and its end, and nothing else.
 */
import { connect, type Socket } from 'node:net';

/** `status` 0: the connection was lost before the reply was whole, or could not be opened; `body` then says why, if it is known. */
export type OnReply = (status: number, body: string) => void;

const HEAD_END = '\r\n\r\n';
const LENGTH = 'content-length: ';

/** One request under way at a time; it is opened again when it was lost. */
export class Connection {
  #socket: Socket | undefined;
  #host: string;
  #port: number;
  #localAddress: string;
  #text = '';
  #why = '';
  #onReply: OnReply | undefined;

  constructor(host: string, port: number, localAddress: string) {
    this.#host = host;
    this.#port = port;
    this.#localAddress = localAddress;
  }

  /** @throws {Error} when it cannot be opened: nobody listens, or no port is left */
  open(): Promise<void> {
    const socket = connect({ host: this.#host, port: this.#port, localAddress: this.#localAddress, noDelay: true });
    this.#socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (part: string) => this.#take(part));
    socket.on('close', () => this.#lost(socket));
    return new Promise((resolve, reject) => {
      socket.once('connect', () => {
        socket.off('error', reject);
        socket.on('error', ({ message }) => (this.#why = message)); // 'close' follows, which tells it
        resolve();
      });
      socket.once('error', reject);
    });
  }

  /** Sends one request; opens the connection again if it was lost. Calls back once. */
  ask(request: string, onReply: OnReply): void {
    this.#onReply = onReply;
    if (this.#socket === undefined) {
      this.open().then(
        () => this.#socket?.write(request, 'latin1'),
        (error: unknown) => this.#done(0, String(error)),
      );
      return;
    }
    this.#socket.write(request, 'latin1');
  }

  /** What is under way gets no reply. */
  close(): void {
    this.#onReply = undefined;
    this.#socket?.destroy();
  }

  #take(part: string): void {
    const text = this.#text === '' ? part : this.#text + part;
    const head = text.indexOf(HEAD_END);
    const at = text.indexOf(LENGTH);
    const length =
      at < 0 || at > head ? 0 : Number.parseInt(text.slice(at + LENGTH.length, at + LENGTH.length + 8), 10);
    if (head < 0 || text.length < head + HEAD_END.length + length) {
      this.#text = text;
      return;
    }
    this.#text = '';
    const status = Number(text.slice(9, 12));
    this.#done(status, text.slice(head + HEAD_END.length));
  }

  #lost(socket: Socket): void {
    if (this.#socket !== socket) return;
    this.#socket = undefined;
    this.#text = '';
    this.#done(0, this.#why);
    this.#why = '';
  }

  #done(status: number, body: string): void {
    const onReply = this.#onReply;
    this.#onReply = undefined;
    onReply?.(status, body);
  }
}
