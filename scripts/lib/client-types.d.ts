/** Where the client's types are. */
export const TYPES: string;
/** The types of an OpenAPI 3.1 document, formatted as the file is. */
export function clientTypes(document: object): Promise<string>;
