// The types of src/client/, from the OpenAPI document: what scripts/dump-client.js writes, and a test compares.
import openapiTS, { astToString } from 'openapi-typescript';
import { format, resolveConfig } from 'prettier';
import { join } from 'node:path';
import { ROOT } from './folders.js';

export const TYPES = join(ROOT, 'src/client/openapi.d.ts');

const HEADER = `/**
 * The HTTP interface as types, with AUTH_MODE=service and PAYMENT_PROVIDER=stripe. Made from /openapi.json; do not edit.
 * Anew: node_modules/node/bin/node scripts/dump-client.js
 */
`;

/** @param {object} document OpenAPI 3.1; it is left as it is */
export async function clientTypes(document) {
  const nodes = await openapiTS(structuredClone(document), { alphabetize: true });
  return format(HEADER + astToString(nodes), { ...(await resolveConfig(TYPES)), parser: 'typescript' });
}
