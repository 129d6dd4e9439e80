/** The schema of the database that `client` is connected to, as text; the same on every machine. */
export function dumpSchema(client: {
  query(sql: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}): Promise<string>;
