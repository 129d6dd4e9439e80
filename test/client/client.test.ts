/** What the client adds by hand: attempts, pauses, a deadline, errors. The server here is one that misbehaves on purpose. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { flashgate, NoAnswer, ProblemError, told, type FlashgateOptions } from '../../src/client/client.ts';
import { problemBody, type ProblemCode } from '../../src/http/problem.ts';
import { examples } from '../../src/http/examples.ts';

type Step = (response: ServerResponse, request: IncomingMessage) => void;
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Answers the first request by the first step, and so on; the last one again and again. */
async function serve(...steps: Step[]) {
  const asked: { at: number; line: string; body: string; token: string | undefined }[] = [];
  const server = createServer((request, response) => {
    const step = steps[Math.min(asked.length, steps.length - 1)] as Step;
    const { authorization: token } = request.headers;
    const seen = { at: performance.now(), line: `${request.method ?? ''} ${request.url ?? ''}`, body: '', token };
    asked.push(seen);
    request.setEncoding('utf8').on('data', (chunk: string) => (seen.body += chunk));
    request.on('end', () => step(response, request));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { asked, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/some/path` };
}

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Step =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
const problem =
  (status: number, code: ProblemCode, headers: Record<string, string> = {}): Step =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/problem+json', ...headers }).end(problemBody(code));
const won = json(202, examples['Reserved']);
const hangUp: Step = (response) => response.destroy();
const cutBody: Step = (response) => {
  response.writeHead(202, { 'content-type': 'application/json', 'content-length': '500' });
  response.write('{"outcome":', () => response.destroy());
};
const silence: Step = () => undefined;

const press = (baseUrl: string, options: Partial<FlashgateOptions> = {}, signal?: AbortSignal) =>
  flashgate({ baseUrl, token: 'a-token', ...options }).POST('/sales/{saleId}/reserve', {
    params: { path: { saleId: 's' } },
    body: { userId: 'u' },
    ...(signal && { signal }),
  });

describe('tries again, the same request', () => {
  test.each<[string, Step]>([
    ['a connection that is closed without an answer', hangUp],
    ['an answer that ends in the middle', cutBody],
    ['503 without a Retry-After', problem(503, 'gate_unavailable')],
    ['a gateway’s own 502', (response) => response.writeHead(502).end('<h1>Bad Gateway</h1>')],
    ['429', problem(429, 'rate_limited', { 'retry-after': '0' })],
  ])('%s', async (_, step) => {
    const { asked, baseUrl } = await serve(step, step, won);
    expect(await told(press(baseUrl))).toEqual(examples['Reserved']);
    expect(asked).toHaveLength(3);
    for (const { line, body, token } of asked) {
      expect([line, body, token]).toEqual(['POST /some/path/sales/s/reserve', '{"userId":"u"}', 'Bearer a-token']);
    }
  });

  test('after Retry-After, and not before', async () => {
    const { asked, baseUrl } = await serve(problem(503, 'paused', { 'retry-after': '1' }), won);
    await told(press(baseUrl));
    const [first, second] = asked.map(({ at }) => at);
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThan(990);
  });

  test('an attempt that stays without an answer is given up, and another one made', async () => {
    const { asked, baseUrl } = await serve(silence, won);
    await told(press(baseUrl, { attemptMs: 200 }));
    expect(asked).toHaveLength(2);
  });
});

describe('does not', () => {
  test.each<[number, ProblemCode]>([
    [409, 'sold_out'],
    [400, 'invalid_request'],
    [500, 'internal_error'],
    [502, 'payment_provider_refused'],
  ])('when it was decided: %i %s, whatever Retry-After says', async (status, code) => {
    const { asked, baseUrl } = await serve(problem(status, code, { 'retry-after': '1' }), won);
    const { error } = await press(baseUrl);
    expect(error).toMatchObject({ status, code });
    expect(asked).toHaveLength(1);
  });

  test('when its pause would end after the deadline: the refusal is told at once', async () => {
    const { asked, baseUrl } = await serve(problem(503, 'paused', { 'retry-after': '60' }), won);
    const started = performance.now();
    const refused = told(press(baseUrl, { deadlineMs: 30_000 }));
    await expect(refused).rejects.toMatchObject({ name: 'ProblemError', code: 'paused', status: 503, retryAfter: 60 });
    expect(performance.now() - started).toBeLessThan(15_000);
    expect(asked).toHaveLength(1);
  });

  test('when the caller has given it up', async () => {
    const { asked, baseUrl } = await serve(silence);
    const gone = new AbortController();
    const pressing = press(baseUrl, {}, gone.signal);
    await expect.poll(() => asked.length).toBe(1);
    gone.abort(new Error('the buyer has left'));
    await expect(pressing).rejects.toThrow('the buyer has left');
    expect(asked).toHaveLength(1);
  });
});

describe('errors', () => {
  test('no answer by the deadline: NoAnswer, which says of what and why', async () => {
    const { asked, baseUrl } = await serve(silence);
    const failing = press(baseUrl, { deadlineMs: 1000, attemptMs: 300, tries: 100 });
    await expect(failing).rejects.toBeInstanceOf(NoAnswer);
    await expect(failing).rejects.toThrow(
      /^POST http.*\/sales\/s\/reserve: no answer in \d tries and \d+ ms: .*timeout/,
    );
    expect(asked.length).toBeGreaterThan(1);
    expect(asked.length).toBeLessThan(5);
  });

  test('nor after so many tries, which is soon where nobody listens', async () => {
    const { baseUrl } = await serve(silence);
    await closing.pop()?.();
    const failing = press(baseUrl, { deadlineMs: 600_000, tries: 3 });
    await expect(failing).rejects.toThrow(/no answer in 3 tries and \d+ ms: .*ECONNREFUSED/);
  });

  test('a refusal that stays the same for so many tries is told', async () => {
    const { asked, baseUrl } = await serve(problem(503, 'gate_unavailable', { 'retry-after': '0' }));
    await expect(told(press(baseUrl, { tries: 4 }))).rejects.toMatchObject({ code: 'gate_unavailable' });
    expect(asked).toHaveLength(4);
  });

  test('a refusal: ProblemError with the document', async () => {
    const { baseUrl } = await serve(problem(404, 'sale_not_found'));
    const error = await told(press(baseUrl)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ProblemError);
    expect(error).toMatchObject({ code: 'sale_not_found', problem: { type: 'urn:flashgate:problem:sale_not_found' } });
    expect(String(error)).toContain('HTTP 404 sale_not_found: There is no such sale');
  });

  test('what is not flashgate’s own has no code', async () => {
    const { baseUrl } = await serve((response) => response.writeHead(413).end('<h1>Too large</h1>'));
    const error = await told(press(baseUrl)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'ProblemError', status: 413, code: undefined });
    expect(String(error)).toContain('<h1>Too large</h1>');
  });
});
