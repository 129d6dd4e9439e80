/** What the database refuses of webhooks out to the shop: rows for the table of constraints.test.ts. */
const [CHECK, UNIQUE, FOREIGN] = ['23514', '23505', '23503'];

const insert = (table: string, row: Record<string, string>) =>
  `insert into ${table} (${Object.keys(row).join(', ')}) values (${Object.values(row).join(', ')});`;
const endpoint = (but: Record<string, string> = {}) =>
  insert('webhook_endpoints', {
    endpoint_id: `'shop'`,
    url: `'https://s/'`,
    events: `array['reservation.paid']`,
    ...but,
  });
const delivery = (but: Record<string, string>) =>
  insert('webhook_deliveries', {
    endpoint_key: '1',
    event_id: `'e'`,
    type: `'reservation.paid'`,
    payload: `'{}'`,
    ...but,
  });
const secret = (text: string) =>
  `insert into webhook_secrets (endpoint_key, secret) select endpoint_key, '${text}' from webhook_endpoints;`;

/** What, by which statements, and by whom it is refused. */
export const ofWebhooks: [what: string, sql: string, by: string][] = [
  [
    'an endpoint with a slash in its id',
    endpoint({ endpoint_id: `'a/b'` }),
    `${CHECK} webhook_endpoints_endpoint_id_check`,
  ],
  ['two endpoints of one id', endpoint() + endpoint(), `${UNIQUE} webhook_endpoints_endpoint_id_key`],
  ['an endpoint without a URL', endpoint({ url: `''` }), `${CHECK} webhook_endpoints_url_check`],
  ['an endpoint for no events', endpoint({ events: `'{}'` }), `${CHECK} webhook_endpoints_events_check`],
  ['an endpoint for unknown events', endpoint({ events: `'{paid}'` }), `${CHECK} webhook_endpoints_events_check`],
  ['an endpoint that is gone and active', endpoint({ gone_at: 'now()' }), `${CHECK} gone_is_inactive`],
  ['two present secrets', endpoint() + secret('whsec_a') + secret('whsec_b'), `${UNIQUE} one_present_secret`],
  ['a secret in another form', endpoint() + secret('abc'), `${CHECK} webhook_secrets_secret_check`],
  [
    'a secret of no endpoint',
    insert('webhook_secrets', { endpoint_key: '0', secret: `'whsec_a'` }),
    `${FOREIGN} webhook_secrets_endpoint_key_fkey`,
  ],
  ['an unknown status of a delivery', delivery({ status: `'SENT'` }), `${CHECK} webhook_deliveries_status_check`],
  ['less than no attempts', delivery({ attempts: '-1' }), `${CHECK} webhook_deliveries_attempts_check`],
  [
    'an answer kept whole',
    delivery({ last_answer: `repeat('x', 501)` }),
    `${CHECK} webhook_deliveries_last_answer_check`,
  ],
  ['an error kept whole', delivery({ last_error: `repeat('x', 501)` }), `${CHECK} webhook_deliveries_last_error_check`],
];
