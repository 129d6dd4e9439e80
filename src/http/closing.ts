/**
 * How the app takes leave of its connections when it closes. A kept-alive connection that seems idle may have a request
 * on its way already; closed at that moment, it would be reset, and somebody would never learn whether they won. So
 * before the server closes, every answer says `Connection: close` for a while (RFC 9112, section 9.6): who is active goes
 * by themselves, and what is closed after that was idle all the time.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

/** How long a connection that is idle when the app begins to close, or on which nothing was ever sent, may still be used. */
const LEAVE_MS = 1000;
const LOOK_EVERY_MS = 25;

/** Call it before any connection is made. */
export function closeConnectionsInPeace(app: FastifyInstance): void {
  const open = new Map<Socket, { since: number }>();
  app.server.on('connection', (socket: Socket) => {
    open.set(socket, { since: performance.now() });
    socket.once('close', () => open.delete(socket));
  });
  app.addHook('preClose', async () => {
    if (!app.server.listening) return;
    // Fastify says it with the answer to every request that comes from now on; these came before.
    for (const socket of open.keys()) sayClose(socket);
    for (const end = performance.now() + LEAVE_MS; open.size > 0 && performance.now() < end;)
      await sleep(LOOK_EVERY_MS);
    // Then Node.js closes what is idle at that moment. Whoever falls idle later (an event stream has ended) would be kept
    // for KEEP_ALIVE_MS, and the process with them; so would those on which nothing was ever sent, as browsers open them
    // in advance: Node.js does not count them as idle.
    const timer = setInterval(() => {
      app.server.closeIdleConnections();
      const longAgo = performance.now() - LEAVE_MS;
      for (const [socket, { since }] of open) if (socket.bytesRead === 0 && since < longAgo) socket.destroy();
    }, LOOK_EVERY_MS);
    app.server.once('close', () => clearInterval(timer));
  });
}

/** For an answer that is not written yet. Node.js has no public way from a connection to it; a test holds this one. */
function sayClose(socket: Socket & { _httpMessage?: ServerResponse | null }): void {
  const answer = socket._httpMessage;
  if (answer && !answer.headersSent) answer.setHeader('connection', 'close');
}
