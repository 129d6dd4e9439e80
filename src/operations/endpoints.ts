/** Why an endpoint of the shop's webhooks cannot be changed like that. The changes themselves are in ledger/webhooks.ts. */

/** `code` is the problem's name in the HTTP interface. */
export class EndpointConflict extends Error {
  readonly code: 'endpoint_not_found' | 'delivery_not_found' | 'too_many_endpoints';

  constructor(code: EndpointConflict['code'], message: string) {
    super(message);
    this.code = code;
  }
}
