/**
 * Holds real answers to the document that the same app serves: a status that is documented, the media type, the body by
 * its schema (for a refusal: one of the codes that this operation may have), and the headers, required ones included.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { LightMyRequestResponse } from 'fastify';
import { expect } from 'vitest';

type Header = { required?: boolean; schema: { type: string } };
export type Response = { description: string; headers?: Record<string, object>; content?: Record<string, Media> };
export type Media = {
  schema: object;
  example?: unknown;
  examples?: Record<string, object>;
  'x-events'?: Record<string, object>;
};
export type Operation = {
  operationId: string;
  summary?: string;
  tags?: string[];
  security?: Record<string, string[]>[];
  requestBody?: { content: Record<string, Media & { schema: { required?: string[] } }> };
  parameters?: { name: string; required?: boolean }[];
  responses: Record<string, object>;
};
export type Document = {
  openapi: string;
  info: object;
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, { post: Operation }>;
  components: {
    securitySchemes: Record<string, object>;
    schemas: Record<string, { properties: Record<string, object>; examples?: unknown[] }>;
    examples: Record<string, { value: unknown }>;
  };
};

export type Answer = Pick<LightMyRequestResponse, 'statusCode' | 'headers' | 'body'>;

/** Answers that belong to no operation, whoever asks for them. */
const OF_NO_OPERATION = ['not_found', 'method_not_allowed'];

type Compiler = { ajv: Ajv2020; known: Map<string, ValidateFunction> };
const compilers = new Map<string, Compiler>();

/** Compiling takes longer than most tests: once for all apps of a file that serve the same document. */
function compilerOf(document: Document): Compiler {
  const text = JSON.stringify(document);
  const known = compilers.get(text);
  if (known) return known;
  const ajv = new Ajv2020({ strict: false });
  addFormats.default(ajv);
  ajv.addSchema(document, 'openapi');
  const made = { ajv, known: new Map<string, ValidateFunction>() };
  compilers.set(text, made);
  return made;
}

export class Conformity {
  /** `operationId code` for each refusal, `operationId status` for each other answer that was looked at. */
  readonly seen = new Set<string>();
  readonly document: Document;
  #compiler: Compiler;
  #operations: { path: RegExp; methods: Record<string, Operation> }[];

  constructor(document: Document) {
    this.document = document;
    this.#compiler = compilerOf(document);
    this.#operations = Object.entries(document.paths).map(([path, methods]) => ({
      path: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
      methods,
    }));
  }

  /** What a reference leads to; anything else as it is. */
  resolve(given: object): object {
    if (!('$ref' in given)) return given;
    const parts = String(given.$ref)
      .slice(2)
      .split('/')
      .map((part) => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'));
    return parts.reduce<object>((found, part) => (found as Record<string, object>)[part] ?? {}, this.document);
  }

  /** @param schema of the document; its references are the document's */
  validate(schema: object, value: unknown, about: string): void {
    const text = JSON.stringify(schema).replaceAll('"#/', '"openapi#/');
    const { ajv, known } = this.#compiler;
    const validate = known.get(text) ?? ajv.compile(JSON.parse(text) as object);
    known.set(text, validate);
    expect(validate(value), `${about}: ${JSON.stringify(value)}: ${ajv.errorsText(validate.errors)}`).toBe(true);
  }

  /** Holds an answer to the operation that it is of; what is of none is let pass. */
  check(method: string, url: string, answer: Answer): void {
    const [pathname = ''] = url.split(/[?#]/);
    const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
    const operation = this.#operations.find(({ path }) => path.test(pathname))?.methods[verb];
    if (!operation) return;
    const type = String(answer.headers['content-type']).split(';')[0] ?? '';
    const body: unknown = type.endsWith('json') && answer.body !== '' ? JSON.parse(answer.body) : undefined;
    const code = body instanceof Object && 'code' in body ? String(body.code) : undefined;
    if (code !== undefined && OF_NO_OPERATION.includes(code)) return;
    if (method === 'HEAD' && answer.statusCode === 405) return; // the same, without its body
    const status = String(answer.statusCode);
    const about = `${operation.operationId} ${status}`;
    const found = operation.responses[status];
    if (!found) throw new Error(`${about} is not documented: ${answer.body}`);
    const { content, headers = {} } = this.resolve(found) as Response;
    this.#checkHeaders(headers, answer, about);
    this.seen.add(`${operation.operationId} ${code ?? status}`);
    if (method === 'HEAD') return;
    if (!content) expect(answer.body, about).toBe('');
    else {
      const media = content[type];
      if (!media) throw new Error(`${about} is not documented as ${type}`);
      if (media['x-events']) this.#checkEvents(media['x-events'], answer.body, about);
      else this.validate(media.schema, body, about);
    }
  }

  /** A stream that has ended: each event has a name that the document knows, and data by its schema. */
  #checkEvents(schemas: Record<string, object>, body: string, about: string): void {
    const blocks = body.split('\n\n').filter((block) => block.startsWith('event: '));
    expect(blocks.length, about).toBeGreaterThan(0);
    for (const block of blocks) {
      const [, name = '', data = ''] = /^event: (\w+)\n(?:id: \S+\n)?data: (.+)$/.exec(block) ?? [];
      const schema = schemas[name];
      if (!schema) throw new Error(`${about} has an event that is not documented: ${block}`);
      this.validate(schema, JSON.parse(data), `${about} ${name}`);
    }
  }

  #checkHeaders(headers: Record<string, object>, { headers: given }: Answer, about: string): void {
    for (const [name, header] of Object.entries(headers)) {
      const { required, schema } = this.resolve(header) as Header;
      const value = given[name.toLowerCase()];
      if (value === undefined) expect(required, `${about} without ${name}`).not.toBe(true);
      else this.validate(schema, schema.type === 'integer' ? Number(value) : String(value), `${about} ${name}`);
    }
    // Nor may there be one of these that is not told of.
    for (const name of TOLD_OF) {
      const documented = Object.keys(headers).some((each) => each.toLowerCase() === name);
      if (!documented) expect(given[name], `${about} has ${name}`).toBeUndefined();
    }
  }
}

/** Headers by which callers act. */
const TOLD_OF = ['location', 'retry-after', 'www-authenticate', 'ratelimit-limit', 'ratelimit-reset'];
