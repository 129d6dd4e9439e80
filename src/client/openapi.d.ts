/**
 * The HTTP interface as types, with AUTH_MODE=service and PAYMENT_PROVIDER=stripe. Made from /openapi.json; do not edit.
 * Anew: node_modules/node/bin/node scripts/dump-client.js
 */
export interface paths {
  '/admin/journal': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * What admins changed, tried to change, and looked into: oldest first
     * @description Needs a token of ADMIN_TOKEN.
     */
    get: operations['listJournal'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/admin/sales': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * All sales
     * @description Needs a token of ADMIN_TOKEN.
     */
    get: operations['listSales'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/admin/sales/{saleId}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * A sale with gate, queue and ledger figures side by side
     * @description Needs a token of ADMIN_TOKEN.
     */
    get: operations['getSaleFigures'];
    /**
     * Create a sale, or change it to these whole settings
     * @description Needs a token of ADMIN_TOKEN.
     */
    put: operations['putSale'];
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/admin/sales/{saleId}/close': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Close an ended sale and remove its gate
     * @description Needs a token of ADMIN_TOKEN.
     */
    post: operations['closeSale'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/admin/sales/{saleId}/end': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * End a sale for good; its holds may still be paid
     * @description Needs a token of ADMIN_TOKEN.
     */
    post: operations['endSale'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/admin/sales/{saleId}/orders': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Orders of one status, in the order in which they came into it
     * @description Needs a token of ADMIN_TOKEN.
     */
    get: operations['listOrders'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/admin/sales/{saleId}/orders/{reservationId}/refund': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Give the money of a paid order back; its units are for sale again, or leave the sale
     * @description Needs a token of ADMIN_TOKEN.
     */
    post: operations['refundOrder'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/admin/sales/{saleId}/pause': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Nobody wins until it is resumed
     * @description Needs a token of ADMIN_TOKEN.
     */
    post: operations['pauseSale'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/admin/sales/{saleId}/resume': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Open a paused sale again
     * @description Needs a token of ADMIN_TOKEN.
     */
    post: operations['resumeSale'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/admin/webhooks': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * All endpoints
     * @description Needs a token of ADMIN_TOKEN.
     */
    get: operations['listWebhookEndpoints'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/admin/webhooks/{endpointId}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * An endpoint
     * @description Needs a token of ADMIN_TOKEN.
     */
    get: operations['getWebhookEndpoint'];
    /**
     * Create an endpoint, or change it to these whole settings
     * @description Needs a token of ADMIN_TOKEN.
     */
    put: operations['putWebhookEndpoint'];
    post?: never;
    /**
     * Delete an endpoint
     * @description Needs a token of ADMIN_TOKEN.
     */
    delete: operations['deleteWebhookEndpoint'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/admin/webhooks/{endpointId}/deliveries': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * The log of deliveries, the newest events first
     * @description Needs a token of ADMIN_TOKEN.
     */
    get: operations['listWebhookDeliveries'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/admin/webhooks/{endpointId}/deliveries/{eventId}/redeliver': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Have an event sent again, under the same id
     * @description Needs a token of ADMIN_TOKEN.
     */
    post: operations['redeliverWebhook'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/admin/webhooks/{endpointId}/rotate': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * A new secret for an endpoint
     * @description Needs a token of ADMIN_TOKEN.
     */
    post: operations['rotateWebhookSecret'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/livez': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** The process answers */
    get: operations['live'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/readyz': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** Ready to take traffic; the dependencies’ state in the body */
    get: operations['ready'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/sales/{saleId}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** A sale as anybody may see it */
    get: operations['getSale'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/sales/{saleId}/events': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** A sale as anybody may see it, now and whenever it changes, as server-sent events until it is closed */
    get: operations['saleEvents'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/sales/{saleId}/reservations/{reservationId}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * A reservation of this buyer. 404 can also mean that gate and queue lost it together
     * @description Needs a token of SERVICE_TOKEN.
     */
    get: operations['getReservation'];
    put?: never;
    post?: never;
    /**
     * Give up an unpaid reservation
     * @description Needs a token of SERVICE_TOKEN.
     */
    delete: operations['cancelReservation'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/sales/{saleId}/reservations/{reservationId}/checkout': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * A page at the payment provider on which this reservation is paid; the same one when asked again
     * @description Needs a token of SERVICE_TOKEN.
     */
    post: operations['openCheckout'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/sales/{saleId}/reservations/{reservationId}/events': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * A reservation of this buyer, now and whenever it changes, as server-sent events until it is paid or over
     * @description Needs a token of SERVICE_TOKEN.
     */
    get: operations['reservationEvents'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/sales/{saleId}/reserve': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * The press of Buy: reserve units
     * @description Needs a token of SERVICE_TOKEN.
     */
    post: operations['reserve'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/webhooks/payments': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * A payment event, signed as Standard Webhooks say
     * @description Needs a signature by a secret of WEBHOOK_SECRET, as Standard Webhooks say: `v1,` and HMAC-SHA256 in base64.
     */
    post: operations['receivePaymentEvent'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/webhooks/stripe': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * A payment event in the provider’s own form, signed as the provider does
     * @description Needs Stripe’s own signature, by a secret of STRIPE_WEBHOOK_SECRET.
     */
    post: operations['receiveProviderEvent'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export interface webhooks {
  'payment.canceled': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * The provider gave up: the hold is freed
     * @description Sent to POST /webhooks/payments, whose answers these are. Anything but 2xx: send it again.
     */
    post: operations['paymentCanceled'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  'payment.failed': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * A card was declined: recorded, the hold stays
     * @description Sent to POST /webhooks/payments, whose answers these are. Anything but 2xx: send it again.
     */
    post: operations['paymentFailed'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  'payment.succeeded': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Money was captured: the reservation is paid, or the money is owed back
     * @description Sent to POST /webhooks/payments, whose answers these are. Anything but 2xx: send it again.
     */
    post: operations['paymentSucceeded'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  'refund.failed': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * The money could not be given back: a person is needed
     * @description Sent to POST /webhooks/payments, whose answers these are. Anything but 2xx: send it again.
     */
    post: operations['refundFailed'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  'refund.succeeded': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * The money is given back
     * @description Sent to POST /webhooks/payments, whose answers these are. Anything but 2xx: send it again.
     */
    post: operations['refundSucceeded'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  'reservation.cancelled': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Given up by the buyer, or by the payment provider
     * @description Sent to the endpoints that want it, at least once and in no order; after any other answer again.
     */
    post: operations['reservationCancelled'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  'reservation.expired': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Not paid in time; its units are for sale again
     * @description Sent to the endpoints that want it, at least once and in no order; after any other answer again.
     */
    post: operations['reservationExpired'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  'reservation.paid': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Paid in time: ship it
     * @description Sent to the endpoints that want it, at least once and in no order; after any other answer again.
     */
    post: operations['reservationPaid'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  'reservation.refunded': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Was paid, and its money is on its way back
     * @description Sent to the endpoints that want it, at least once and in no order; after any other answer again.
     */
    post: operations['reservationRefunded'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  'reservation.rejected': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * A winner for whom there was no unit: tell them
     * @description Sent to the endpoints that want it, at least once and in no order; after any other answer again.
     */
    post: operations['reservationRejected'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export interface components {
  schemas: {
    /**
     * @example {
     *       "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
     *       "saleId": "sample",
     *       "userId": "u-1",
     *       "qty": 1,
     *       "amount": 49900,
     *       "currency": "EUR",
     *       "reservedAt": "2026-11-29T20:45:24.120Z",
     *       "expiresAt": "2026-11-29T20:55:24.120Z",
     *       "status": "REFUNDED",
     *       "refund": "SUCCEEDED",
     *       "unitsReturned": true
     *     }
     */
    AdminReservation: {
      amount: number;
      currency: string;
      /** Format: date-time */
      expiresAt: string;
      qty: number;
      /** @enum {string} */
      reason?: 'no_room' | 'duplicate_buyer' | 'by_buyer' | 'payment_canceled';
      /** @enum {string} */
      refund?: 'PENDING' | 'SUBMITTED' | 'SUCCEEDED' | 'FAILED';
      /** Format: uuid */
      reservationId: string;
      /** Format: date-time */
      reservedAt: string;
      saleId: string;
      /** @enum {string} */
      status: 'PENDING_PAYMENT' | 'PAID' | 'EXPIRED' | 'CANCELLED' | 'REJECTED' | 'REFUNDED';
      unitsReturned?: boolean;
      userId: string;
    };
    /**
     * @example {
     *       "saleId": "sample",
     *       "state": "open",
     *       "name": "Sample phone",
     *       "total": 100,
     *       "holdSeconds": 600,
     *       "maxPerReservation": 2,
     *       "price": {
     *         "amount": 49900,
     *         "currency": "EUR"
     *       },
     *       "startsAt": "2026-11-29T20:44:30.801Z",
     *       "endsAt": "2026-12-29T20:44:30.801Z",
     *       "settings": 1
     *     }
     */
    AdminSale: {
      /** Format: date-time */
      endsAt: string;
      holdSeconds: number;
      maxPerReservation: number;
      name: string;
      price: {
        amount: number;
        currency: string;
      };
      saleId: string;
      settings: number;
      /** Format: date-time */
      startsAt: string;
      /** @enum {string} */
      state: 'scheduled' | 'open' | 'paused' | 'ended' | 'closed';
      total: number;
    };
    AdminSales: {
      sales: components['schemas']['AdminSale'][];
    };
    /**
     * @example {
     *       "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
     *       "amount": 49900,
     *       "currency": "EUR",
     *       "expiresAt": "2026-11-29T20:55:24.120Z",
     *       "url": "https://checkout.stripe.com/c/pay/cs_test_1"
     *     }
     */
    CheckoutPage: {
      amount: number;
      currency: string;
      /** Format: date-time */
      expiresAt: string;
      /** Format: uuid */
      reservationId: string;
      /** Format: uri */
      url: string;
    };
    Health: {
      /** @enum {string} */
      status: 'ok' | 'starting' | 'draining';
    };
    /**
     * @example {
     *       "entries": [
     *         {
     *           "entryId": 7,
     *           "at": "2026-11-29T20:45:30.200Z",
     *           "who": "token",
     *           "requestId": "6f1c9a9e",
     *           "action": "pause",
     *           "saleId": "sample",
     *           "outcome": "done",
     *           "before": {
     *             "state": "open",
     *             "settings": 1
     *           },
     *           "after": {
     *             "state": "paused",
     *             "settings": 2
     *           }
     *         }
     *       ],
     *       "next": "763.7"
     *     }
     */
    Journal: {
      entries: {
        /** @enum {string} */
        action:
          | 'create'
          | 'change'
          | 'resize'
          | 'pause'
          | 'resume'
          | 'end'
          | 'close'
          | 'refund'
          | 'audit'
          | 'rush'
          | 'delete'
          | 'rotate'
          | 'redeliver';
        after?: {
          [key: string]: unknown;
        };
        /** Format: date-time */
        at: string;
        before?: {
          [key: string]: unknown;
        };
        endpointId?: string;
        entryId: number;
        /** @enum {string} */
        outcome: 'done' | 'refused' | 'failed';
        reason?: string;
        requestId?: string;
        saleId?: string;
        session?: string;
        /** @enum {string} */
        who: 'token' | 'session' | 'command';
      }[];
      next: string | null;
    };
    /**
     * @example {
     *       "orders": [
     *         {
     *           "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
     *           "saleId": "sample",
     *           "userId": "u-1",
     *           "qty": 1,
     *           "amount": 49900,
     *           "currency": "EUR",
     *           "reservedAt": "2026-11-29T20:45:24.120Z",
     *           "expiresAt": "2026-11-29T20:55:24.120Z",
     *           "status": "PAID"
     *         }
     *       ],
     *       "next": "762.541460b2-8259-4f70-9018-0676e172f86a"
     *     }
     */
    Orders: {
      next: string | null;
      orders: components['schemas']['AdminReservation'][];
    };
    /**
     * @example {
     *       "type": "payment.succeeded",
     *       "timestamp": "2026-11-29T20:46:02Z",
     *       "data": {
     *         "paymentId": "pay-1",
     *         "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
     *         "amount": 49900,
     *         "currency": "EUR"
     *       }
     *     }
     */
    PaymentEvent: {
      data: {
        amount: number;
        currency: string;
        paymentId: string;
        reservationId: string;
      } & {
        [key: string]: unknown;
      };
      timestamp: string;
      /** @enum {string} */
      type: 'payment.succeeded' | 'payment.failed' | 'payment.canceled' | 'refund.succeeded' | 'refund.failed';
    } & {
      [key: string]: unknown;
    };
    Problem: {
      /** @enum {string} */
      code:
        | 'invalid_request'
        | 'malformed_event'
        | 'unauthorized'
        | 'bad_signature'
        | 'wrong_mode'
        | 'timestamp_out_of_range'
        | 'forbidden'
        | 'csrf_token_wrong'
        | 'not_found'
        | 'sale_not_found'
        | 'reservation_not_found'
        | 'endpoint_not_found'
        | 'delivery_not_found'
        | 'method_not_allowed'
        | 'request_timeout'
        | 'sold_out'
        | 'not_started'
        | 'ended'
        | 'already_paid'
        | 'reservation_ended'
        | 'not_paid'
        | 'refunded_otherwise'
        | 'total_too_low'
        | 'currency_fixed'
        | 'not_settled'
        | 'too_many_endpoints'
        | 'already_running'
        | 'payload_too_large'
        | 'unsupported_media_type'
        | 'qty_over_limit'
        | 'rate_limited'
        | 'headers_too_large'
        | 'internal_error'
        | 'payment_provider_refused'
        | 'payment_provider_unavailable'
        | 'paused'
        | 'gate_not_loaded'
        | 'gate_unavailable'
        | 'queue_unavailable'
        | 'ledger_unavailable'
        | 'keys_unavailable'
        | 'overloaded';
      detail?: string;
      /** @description with qty_over_limit */
      maxPerReservation?: number;
      /** @description with sold_out: false once every unit is paid; Retry-After tells when one may come back */
      mayReturn?: boolean;
      /**
       * Format: date-time
       * @description with not_started
       */
      startsAt?: string;
      status: number;
      title: string;
      type: string;
    } & {
      [key: string]: unknown;
    };
    Readiness: {
      dependencies: {
        postgres: {
          detail?: string;
          ok: boolean;
        };
        queue: {
          detail?: string;
          ok: boolean;
        };
        redis: {
          detail?: string;
          ok: boolean;
        };
      };
      /** @enum {string} */
      status: 'ok' | 'starting' | 'draining';
    };
    /**
     * @example {
     *       "state": "applied",
     *       "outcome": "paid"
     *     }
     */
    Received: {
      outcome: string;
      /** @enum {string} */
      state: 'applied' | 'parked' | 'ignored';
    };
    /**
     * @example {
     *       "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
     *       "saleId": "sample",
     *       "userId": "u-1",
     *       "qty": 1,
     *       "amount": 49900,
     *       "currency": "EUR",
     *       "reservedAt": "2026-11-29T20:45:24.120Z",
     *       "expiresAt": "2026-11-29T20:55:24.120Z",
     *       "status": "PENDING_PAYMENT"
     *     }
     */
    Reservation: {
      amount: number;
      currency: string;
      /** Format: date-time */
      expiresAt: string;
      qty: number;
      /** @enum {string} */
      reason?: 'no_room' | 'duplicate_buyer' | 'by_buyer' | 'payment_canceled';
      /** @enum {string} */
      refund?: 'PENDING' | 'SUBMITTED' | 'SUCCEEDED' | 'FAILED';
      /** Format: uuid */
      reservationId: string;
      /** Format: date-time */
      reservedAt: string;
      saleId: string;
      /** @enum {string} */
      status: 'QUEUED' | 'PENDING_PAYMENT' | 'PAID' | 'EXPIRED' | 'CANCELLED' | 'REJECTED' | 'REFUNDED';
      userId: string;
    };
    /**
     * @example {
     *       "type": "reservation.paid",
     *       "timestamp": "2026-11-29T20:46:02.301Z",
     *       "data": {
     *         "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
     *         "saleId": "sample",
     *         "userId": "u-1",
     *         "qty": 1,
     *         "amount": 49900,
     *         "currency": "EUR",
     *         "reservedAt": "2026-11-29T20:45:24.120Z",
     *         "expiresAt": "2026-11-29T20:55:24.120Z",
     *         "status": "PAID"
     *       }
     *     }
     */
    ReservationEvent: {
      data: {
        amount: number;
        currency: string;
        /** Format: date-time */
        expiresAt: string;
        qty: number;
        /** @enum {string} */
        reason?: 'no_room' | 'duplicate_buyer' | 'by_buyer' | 'payment_canceled';
        /** Format: uuid */
        reservationId: string;
        /** Format: date-time */
        reservedAt: string;
        saleId: string;
        /** @enum {string} */
        status: 'PENDING_PAYMENT' | 'PAID' | 'EXPIRED' | 'CANCELLED' | 'REJECTED' | 'REFUNDED';
        unitsReturned?: boolean;
        userId: string;
      };
      /** Format: date-time */
      timestamp: string;
      /** @enum {string} */
      type:
        | 'reservation.paid'
        | 'reservation.expired'
        | 'reservation.cancelled'
        | 'reservation.rejected'
        | 'reservation.refunded';
    };
    /**
     * @example {
     *       "outcome": "ok",
     *       "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
     *       "saleId": "sample",
     *       "userId": "u-1",
     *       "qty": 1,
     *       "amount": 49900,
     *       "currency": "EUR",
     *       "reservedAt": "2026-11-29T20:45:24.120Z",
     *       "expiresAt": "2026-11-29T20:55:24.120Z"
     *     }
     */
    Reserved: {
      amount: number;
      currency: string;
      /** Format: date-time */
      expiresAt: string;
      /** @enum {string} */
      outcome: 'ok' | 'dup';
      qty: number;
      /** Format: uuid */
      reservationId: string;
      /** Format: date-time */
      reservedAt: string;
      saleId: string;
      userId: string;
    };
    /**
     * @example {
     *       "saleId": "sample",
     *       "state": "open",
     *       "name": "Sample phone",
     *       "total": 100,
     *       "holdSeconds": 600,
     *       "maxPerReservation": 2,
     *       "price": {
     *         "amount": 49900,
     *         "currency": "EUR"
     *       },
     *       "startsAt": "2026-11-29T20:44:30.801Z",
     *       "endsAt": "2026-12-29T20:44:30.801Z",
     *       "unitsLeft": 99,
     *       "serverTime": "2026-11-29T20:45:24.092Z"
     *     }
     */
    Sale: {
      /** Format: date-time */
      endsAt: string;
      holdSeconds: number;
      maxPerReservation: number;
      name: string;
      price: {
        amount: number;
        currency: string;
      };
      saleId: string;
      /** Format: date-time */
      serverTime: string;
      /** Format: date-time */
      startsAt: string;
      /** @enum {string} */
      state: 'scheduled' | 'open' | 'paused' | 'ended' | 'closed';
      total: number;
      /** @description not told when HIDE_UNITS_LEFT is set */
      unitsLeft?: number;
    };
    /**
     * @example {
     *       "saleId": "sample",
     *       "state": "open",
     *       "name": "Sample phone",
     *       "total": 100,
     *       "holdSeconds": 600,
     *       "maxPerReservation": 2,
     *       "price": {
     *         "amount": 49900,
     *         "currency": "EUR"
     *       },
     *       "startsAt": "2026-11-29T20:44:30.801Z",
     *       "endsAt": "2026-12-29T20:44:30.801Z",
     *       "settings": 1,
     *       "away": [],
     *       "queue": {
     *         "waiting": 0,
     *         "inFlight": 0,
     *         "deadLetters": 0
     *       },
     *       "gate": {
     *         "state": "open",
     *         "stock": 99,
     *         "held": 1,
     *         "forfeited": 0,
     *         "total": 100,
     *         "settings": 1,
     *         "unqueued": 0,
     *         "generation": "1",
     *         "version": 1
     *       },
     *       "ledger": {
     *         "total": 100,
     *         "sold": 1,
     *         "byStatus": {
     *           "PENDING_PAYMENT": 0,
     *           "PAID": 1,
     *           "EXPIRED": 0,
     *           "CANCELLED": 0,
     *           "REJECTED": 0,
     *           "REFUNDED": 0
     *         }
     *       }
     *     }
     */
    SaleFigures: {
      away: string[];
      /** Format: date-time */
      endsAt: string;
      gate: {
        forfeited: number;
        generation: string;
        held: number;
        settings: number;
        state: string;
        stock: number;
        total: number;
        unqueued: number;
        version: number;
      } | null;
      holdSeconds: number;
      ledger: {
        byStatus: {
          [key: string]: number;
        };
        sold: number;
        total: number;
      };
      maxPerReservation: number;
      name: string;
      price: {
        amount: number;
        currency: string;
      };
      queue: {
        deadLetters: number | null;
        inFlight: number;
        waiting: number;
      } | null;
      saleId: string;
      settings: number;
      /** Format: date-time */
      startsAt: string;
      /** @enum {string} */
      state: 'scheduled' | 'open' | 'paused' | 'ended' | 'closed';
      total: number;
    };
    /**
     * @example {
     *       "name": "Sample phone",
     *       "total": 100,
     *       "holdSeconds": 600,
     *       "maxPerReservation": 2,
     *       "price": {
     *         "amount": 49900,
     *         "currency": "EUR"
     *       },
     *       "startsAt": "2026-11-29T20:44:30.801Z",
     *       "endsAt": "2026-12-29T20:44:30.801Z"
     *     }
     */
    SaleSettings: {
      /** Format: date-time */
      endsAt: string;
      holdSeconds: number;
      maxPerReservation: number;
      name: string;
      price: {
        amount: number;
        currency: string;
      };
      /** Format: date-time */
      startsAt: string;
      total: number;
    };
    /**
     * @example {
     *       "code": "gate_unavailable"
     *     }
     */
    Unavailable: {
      /** @enum {string} */
      code:
        | 'invalid_request'
        | 'malformed_event'
        | 'unauthorized'
        | 'bad_signature'
        | 'wrong_mode'
        | 'timestamp_out_of_range'
        | 'forbidden'
        | 'csrf_token_wrong'
        | 'not_found'
        | 'sale_not_found'
        | 'reservation_not_found'
        | 'endpoint_not_found'
        | 'delivery_not_found'
        | 'method_not_allowed'
        | 'request_timeout'
        | 'sold_out'
        | 'not_started'
        | 'ended'
        | 'already_paid'
        | 'reservation_ended'
        | 'not_paid'
        | 'refunded_otherwise'
        | 'total_too_low'
        | 'currency_fixed'
        | 'not_settled'
        | 'too_many_endpoints'
        | 'already_running'
        | 'payload_too_large'
        | 'unsupported_media_type'
        | 'qty_over_limit'
        | 'rate_limited'
        | 'headers_too_large'
        | 'internal_error'
        | 'payment_provider_refused'
        | 'payment_provider_unavailable'
        | 'paused'
        | 'gate_not_loaded'
        | 'gate_unavailable'
        | 'queue_unavailable'
        | 'ledger_unavailable'
        | 'keys_unavailable'
        | 'overloaded';
    };
    /**
     * @example {
     *       "deliveries": [
     *         {
     *           "eventId": "541460b2-8259-4f70-9018-0676e172f86a_paid",
     *           "type": "reservation.paid",
     *           "status": "FAILED",
     *           "attempts": 10,
     *           "lastStatus": 500,
     *           "lastAnswer": "oops",
     *           "lastError": "HTTP 500",
     *           "createdAt": "2026-11-29T20:46:02.301Z",
     *           "updatedAt": "2026-12-03T00:01:17.044Z"
     *         }
     *       ],
     *       "next": "17"
     *     }
     */
    WebhookDeliveries: {
      deliveries: components['schemas']['WebhookDelivery'][];
      next: string | null;
    };
    /**
     * @example {
     *       "eventId": "541460b2-8259-4f70-9018-0676e172f86a_paid",
     *       "type": "reservation.paid",
     *       "status": "FAILED",
     *       "attempts": 10,
     *       "lastStatus": 500,
     *       "lastAnswer": "oops",
     *       "lastError": "HTTP 500",
     *       "createdAt": "2026-11-29T20:46:02.301Z",
     *       "updatedAt": "2026-12-03T00:01:17.044Z"
     *     }
     */
    WebhookDelivery: {
      attempts: number;
      /** Format: date-time */
      createdAt: string;
      eventId: string;
      lastAnswer?: string;
      lastError?: string;
      lastStatus?: number;
      /** Format: date-time */
      nextAttemptAt?: string;
      /** @enum {string} */
      status: 'PENDING' | 'DELIVERED' | 'FAILED';
      /** @enum {string} */
      type:
        | 'reservation.paid'
        | 'reservation.expired'
        | 'reservation.cancelled'
        | 'reservation.rejected'
        | 'reservation.refunded';
      /** Format: date-time */
      updatedAt: string;
    };
    /**
     * @example {
     *       "endpointId": "shop",
     *       "url": "https://shop.example/flashgate",
     *       "active": true,
     *       "events": [
     *         "reservation.paid",
     *         "reservation.refunded"
     *       ],
     *       "createdAt": "2026-11-29T20:44:02.918Z"
     *     }
     */
    WebhookEndpoint: {
      active: boolean;
      /** Format: date-time */
      createdAt: string;
      endpointId: string;
      events: (
        | 'reservation.paid'
        | 'reservation.expired'
        | 'reservation.cancelled'
        | 'reservation.rejected'
        | 'reservation.refunded'
      )[];
      /** Format: date-time */
      goneAt?: string;
      /** Format: date-time */
      holdUntil?: string;
      /** Format: date-time */
      oldSecretUntil?: string;
      url: string;
    };
    /**
     * @example {
     *       "endpoints": [
     *         {
     *           "endpointId": "shop",
     *           "url": "https://shop.example/flashgate",
     *           "active": true,
     *           "events": [
     *             "reservation.paid",
     *             "reservation.refunded"
     *           ],
     *           "createdAt": "2026-11-29T20:44:02.918Z"
     *         }
     *       ]
     *     }
     */
    WebhookEndpoints: {
      endpoints: components['schemas']['WebhookEndpoint'][];
    };
    /**
     * @example {
     *       "endpointId": "shop",
     *       "url": "https://shop.example/flashgate",
     *       "active": true,
     *       "events": [
     *         "reservation.paid",
     *         "reservation.refunded"
     *       ],
     *       "createdAt": "2026-11-29T20:44:02.918Z",
     *       "oldSecretUntil": "2026-11-30T20:44:02.918Z",
     *       "secret": "whsec_c2FtcGxlc2FtcGxlc2FtcGxlc2FtcGxl"
     *     }
     */
    WebhookEndpointWithSecret: {
      active: boolean;
      /** Format: date-time */
      createdAt: string;
      endpointId: string;
      events: (
        | 'reservation.paid'
        | 'reservation.expired'
        | 'reservation.cancelled'
        | 'reservation.rejected'
        | 'reservation.refunded'
      )[];
      /** Format: date-time */
      goneAt?: string;
      /** Format: date-time */
      holdUntil?: string;
      /** Format: date-time */
      oldSecretUntil?: string;
      secret: string;
      url: string;
    };
  };
  responses: {
    /** @description `already_paid`: The reservation is paid */
    already_paid: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'already_paid';
        };
      };
    };
    /** @description `already_running`: One is running already */
    already_running: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'already_running';
        };
      };
    };
    /** @description `bad_signature`: The signature does not fit */
    bad_signature: {
      headers: {
        'WWW-Authenticate': components['headers']['WWW-Authenticate'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'bad_signature';
        };
      };
    };
    /** @description `csrf_token_wrong`: This change was not asked for by the operations room’s own page */
    csrf_token_wrong: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'csrf_token_wrong';
        };
      };
    };
    /** @description `currency_fixed`: The currency cannot change any more */
    currency_fixed: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'currency_fixed';
        };
      };
    };
    /** @description `delivery_not_found`: The log of this endpoint has no such event */
    delivery_not_found: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'delivery_not_found';
        };
      };
    };
    /** @description `ended`: The sale has ended */
    ended: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'ended';
        };
      };
    };
    /** @description `endpoint_not_found`: There is no such endpoint */
    endpoint_not_found: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'endpoint_not_found';
        };
      };
    };
    /** @description `forbidden`: This token is not for that */
    forbidden: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'forbidden';
        };
      };
    };
    /** @description `gate_not_loaded`: The sale is being loaded */
    gate_not_loaded: {
      headers: {
        'Retry-After': components['headers']['Retry-After'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'gate_not_loaded';
        };
      };
    };
    /** @description `gate_unavailable`: The gate cannot be reached */
    gate_unavailable: {
      headers: {
        'Retry-After': components['headers']['Retry-After'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'gate_unavailable';
        };
      };
    };
    /** @description `headers_too_large`: The headers are too large */
    headers_too_large: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'headers_too_large';
        };
      };
    };
    /** @description `internal_error`: Something is wrong here, not with your request */
    internal_error: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'internal_error';
        };
      };
    };
    /** @description `invalid_request`: The request is not valid */
    invalid_request: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'invalid_request';
        };
      };
    };
    /** @description `keys_unavailable`: The keys of buyers’ tokens cannot be reached */
    keys_unavailable: {
      headers: {
        'Retry-After': components['headers']['Retry-After'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'keys_unavailable';
        };
      };
    };
    /** @description `ledger_unavailable`: The ledger cannot be reached */
    ledger_unavailable: {
      headers: {
        'Retry-After': components['headers']['Retry-After'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'ledger_unavailable';
        };
      };
    };
    /** @description `malformed_event`: This is not a payment event */
    malformed_event: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'malformed_event';
        };
      };
    };
    /** @description `method_not_allowed`: This method is not allowed here */
    method_not_allowed: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'method_not_allowed';
        };
      };
    };
    /** @description `not_found`: There is nothing here */
    not_found: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'not_found';
        };
      };
    };
    /** @description `not_paid`: The reservation is not paid */
    not_paid: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'not_paid';
        };
      };
    };
    /** @description `not_settled`: Something is still open in this sale */
    not_settled: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'not_settled';
        };
      };
    };
    /** @description `not_started`: The sale has not started */
    not_started: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'not_started';
        };
      };
    };
    /** @description `overloaded`: Too many requests at once */
    overloaded: {
      headers: {
        'Retry-After': components['headers']['Retry-After'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'overloaded';
        };
      };
    };
    /** @description `paused`: The sale is paused */
    paused: {
      headers: {
        'Retry-After': components['headers']['Retry-After'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'paused';
        };
      };
    };
    /** @description `payload_too_large`: The body is too large */
    payload_too_large: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'payload_too_large';
        };
      };
    };
    /** @description `payment_provider_refused`: The payment provider refused */
    payment_provider_refused: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'payment_provider_refused';
        };
      };
    };
    /** @description `payment_provider_unavailable`: The payment provider cannot be reached */
    payment_provider_unavailable: {
      headers: {
        'Retry-After': components['headers']['Retry-After'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'payment_provider_unavailable';
        };
      };
    };
    /** @description `qty_over_limit`: More than one reservation may hold */
    qty_over_limit: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'qty_over_limit';
        };
      };
    };
    /** @description `queue_unavailable`: The queue cannot be reached */
    queue_unavailable: {
      headers: {
        'Retry-After': components['headers']['Retry-After'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'queue_unavailable';
        };
      };
    };
    /** @description `rate_limited`: Too many presses in a short time */
    rate_limited: {
      headers: {
        'RateLimit-Limit': components['headers']['RateLimit-Limit'];
        'RateLimit-Remaining': components['headers']['RateLimit-Remaining'];
        'RateLimit-Reset': components['headers']['RateLimit-Reset'];
        'Retry-After': components['headers']['Retry-After'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'rate_limited';
        };
      };
    };
    /** @description `refunded_otherwise`: The reservation was refunded with its units treated otherwise */
    refunded_otherwise: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'refunded_otherwise';
        };
      };
    };
    /** @description `request_timeout`: The request did not arrive in time */
    request_timeout: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'request_timeout';
        };
      };
    };
    /** @description `reservation_ended`: The reservation is over */
    reservation_ended: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'reservation_ended';
        };
      };
    };
    /** @description `reservation_not_found`: This buyer has no such reservation */
    reservation_not_found: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'reservation_not_found';
        };
      };
    };
    /** @description `sale_not_found`: There is no such sale */
    sale_not_found: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'sale_not_found';
        };
      };
    };
    /** @description `sold_out`: None are left */
    sold_out: {
      headers: {
        'Retry-After': components['headers']['RetryAfterSoldOut'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'sold_out';
        };
      };
    };
    /** @description `timestamp_out_of_range`: The timestamp is too far from now */
    timestamp_out_of_range: {
      headers: {
        'WWW-Authenticate': components['headers']['WWW-Authenticate'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'timestamp_out_of_range';
        };
      };
    };
    /** @description `too_many_endpoints`: No more endpoints are possible */
    too_many_endpoints: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'too_many_endpoints';
        };
      };
    };
    /** @description `total_too_low`: More than that is held or sold */
    total_too_low: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'total_too_low';
        };
      };
    };
    /** @description `unauthorized`: A valid token is needed */
    unauthorized: {
      headers: {
        'WWW-Authenticate': components['headers']['WWW-Authenticate'];
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'unauthorized';
        };
      };
    };
    /** @description `unsupported_media_type`: The body must be application/json */
    unsupported_media_type: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'unsupported_media_type';
        };
      };
    };
    /** @description `wrong_mode`: This event is of the other mode */
    wrong_mode: {
      headers: {
        [name: string]: unknown;
      };
      content: {
        'application/problem+json': components['schemas']['Problem'] & {
          /** @enum {string} */
          code: 'wrong_mode';
        };
      };
    };
  };
  parameters: never;
  requestBodies: never;
  headers: {
    /** @example public, max-age=1 */
    'Cache-Control': string;
    /**
     * @description The reservation’s own address, to be asked for as it stands
     * @example /sales/sample/reservations/541460b2-8259-4f70-9018-0676e172f86a?userId=u-1
     */
    Location: string;
    /**
     * @description Presses per window
     * @example 100
     */
    'RateLimit-Limit': number;
    /** @example 0 */
    'RateLimit-Remaining': number;
    /**
     * @description Seconds until the window is over
     * @example 7
     */
    'RateLimit-Reset': number;
    /**
     * @description Seconds, not the same for everybody: so that those who were refused together do not come back together
     * @example 2
     */
    'Retry-After': number;
    /**
     * @description With `sold_out`, unless `mayReturn` is false: seconds until a unit may come back
     * @example 412
     */
    RetryAfterSoldOut: number;
    /**
     * @description RFC 6750; with `error` for a buyer’s own token that is not good
     * @example Bearer realm="flashgate"
     */
    'WWW-Authenticate': string;
  };
  pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
  listJournal: {
    parameters: {
      query?: {
        after?: string;
        limit?: string;
        saleId?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A page. Keep `next`, and pass it as `after` to go on; null: nothing new yet */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Journal'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      408: components['responses']['request_timeout'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  listSales: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description All of them, closed ones too */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['AdminSales'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      408: components['responses']['request_timeout'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  getSaleFigures: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        saleId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A store that is away is null, and named in `away` */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SaleFigures'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['sale_not_found'];
      408: components['responses']['request_timeout'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  putSale: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        saleId: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['SaleSettings'];
      };
    };
    responses: {
      /** @description Changed: new settings touch new holds only */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['AdminSale'];
        };
      };
      /** @description Created */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['AdminSale'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      408: components['responses']['request_timeout'];
      /** @description `ended`: The sale has ended. `total_too_low`: More than that is held or sold. `currency_fixed`: The currency cannot change any more */
      409: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'ended' | 'total_too_low' | 'currency_fixed';
          };
        };
      };
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      /** @description `gate_not_loaded`: The sale is being loaded. `gate_unavailable`: The gate cannot be reached. `ledger_unavailable`: The ledger cannot be reached */
      503: {
        headers: {
          'Retry-After': components['headers']['Retry-After'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'gate_not_loaded' | 'gate_unavailable' | 'ledger_unavailable';
          };
        };
      };
    };
  };
  closeSale: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        saleId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description As it is now; the same again changes nothing */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['AdminSale'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['sale_not_found'];
      408: components['responses']['request_timeout'];
      409: components['responses']['not_settled'];
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      /** @description `gate_not_loaded`: The sale is being loaded. `gate_unavailable`: The gate cannot be reached. `ledger_unavailable`: The ledger cannot be reached */
      503: {
        headers: {
          'Retry-After': components['headers']['Retry-After'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'gate_not_loaded' | 'gate_unavailable' | 'ledger_unavailable';
          };
        };
      };
    };
  };
  endSale: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        saleId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description As it is now; the same again changes nothing */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['AdminSale'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['sale_not_found'];
      408: components['responses']['request_timeout'];
      409: components['responses']['ended'];
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      /** @description `gate_not_loaded`: The sale is being loaded. `gate_unavailable`: The gate cannot be reached. `ledger_unavailable`: The ledger cannot be reached */
      503: {
        headers: {
          'Retry-After': components['headers']['Retry-After'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'gate_not_loaded' | 'gate_unavailable' | 'ledger_unavailable';
          };
        };
      };
    };
  };
  listOrders: {
    parameters: {
      query?: {
        after?: string;
        limit?: string;
        status?: 'PENDING_PAYMENT' | 'PAID' | 'EXPIRED' | 'CANCELLED' | 'REJECTED' | 'REFUNDED';
      };
      header?: never;
      path: {
        saleId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A page. Keep `next`, and pass it as `after` to go on; null: nothing new yet */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Orders'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['sale_not_found'];
      408: components['responses']['request_timeout'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  refundOrder: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        reservationId: string;
        saleId: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': {
          returnUnits: boolean;
        };
      };
    };
    responses: {
      /** @description Owed back, once; the keeper pays it out */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['AdminReservation'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      /** @description `sale_not_found`: There is no such sale. `reservation_not_found`: This buyer has no such reservation */
      404: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'sale_not_found' | 'reservation_not_found';
          };
        };
      };
      408: components['responses']['request_timeout'];
      /** @description `ended`: The sale has ended. `not_paid`: The reservation is not paid. `refunded_otherwise`: The reservation was refunded with its units treated otherwise */
      409: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'ended' | 'not_paid' | 'refunded_otherwise';
          };
        };
      };
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  pauseSale: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        saleId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description As it is now; the same again changes nothing */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['AdminSale'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['sale_not_found'];
      408: components['responses']['request_timeout'];
      409: components['responses']['ended'];
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      /** @description `gate_not_loaded`: The sale is being loaded. `gate_unavailable`: The gate cannot be reached. `ledger_unavailable`: The ledger cannot be reached */
      503: {
        headers: {
          'Retry-After': components['headers']['Retry-After'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'gate_not_loaded' | 'gate_unavailable' | 'ledger_unavailable';
          };
        };
      };
    };
  };
  resumeSale: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        saleId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description As it is now; the same again changes nothing */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['AdminSale'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['sale_not_found'];
      408: components['responses']['request_timeout'];
      409: components['responses']['ended'];
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      /** @description `gate_not_loaded`: The sale is being loaded. `gate_unavailable`: The gate cannot be reached. `ledger_unavailable`: The ledger cannot be reached */
      503: {
        headers: {
          'Retry-After': components['headers']['Retry-After'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'gate_not_loaded' | 'gate_unavailable' | 'ledger_unavailable';
          };
        };
      };
    };
  };
  listWebhookEndpoints: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description All of them, without their secrets */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['WebhookEndpoints'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      408: components['responses']['request_timeout'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  getWebhookEndpoint: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        endpointId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Without its secret */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['WebhookEndpoint'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['endpoint_not_found'];
      408: components['responses']['request_timeout'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  putWebhookEndpoint: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        endpointId: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': {
          /** @default true */
          active?: boolean;
          events: (
            | 'reservation.paid'
            | 'reservation.expired'
            | 'reservation.cancelled'
            | 'reservation.rejected'
            | 'reservation.refunded'
          )[];
          url: string;
        };
      };
    };
    responses: {
      /** @description Changed; what waits for it goes to the new URL */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['WebhookEndpoint'];
        };
      };
      /** @description Created; its secret is told in this answer only */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['WebhookEndpointWithSecret'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      408: components['responses']['request_timeout'];
      409: components['responses']['too_many_endpoints'];
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  deleteWebhookEndpoint: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        endpointId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Deleted; what was still to be sent to it is not sent */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['endpoint_not_found'];
      408: components['responses']['request_timeout'];
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  listWebhookDeliveries: {
    parameters: {
      query?: {
        after?: string;
        limit?: string;
        status?: 'PENDING' | 'DELIVERED' | 'FAILED';
      };
      header?: never;
      path: {
        endpointId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A page. Pass `next` as `after` for older ones; null: there are none */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['WebhookDeliveries'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['endpoint_not_found'];
      408: components['responses']['request_timeout'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  redeliverWebhook: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        endpointId: string;
        eventId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description It is due now, with all its attempts before it */
      202: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['WebhookDelivery'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      /** @description `endpoint_not_found`: There is no such endpoint. `delivery_not_found`: The log of this endpoint has no such event */
      404: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'endpoint_not_found' | 'delivery_not_found';
          };
        };
      };
      408: components['responses']['request_timeout'];
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  rotateWebhookSecret: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        endpointId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Told in this answer only; the one before signs beside it until `oldSecretUntil` */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['WebhookEndpointWithSecret'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['endpoint_not_found'];
      408: components['responses']['request_timeout'];
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  live: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description It does */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Health'];
        };
      };
      400: components['responses']['invalid_request'];
      408: components['responses']['request_timeout'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
    };
  };
  ready: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Ready. A shared store that is away is told, and does not make a process unready */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Readiness'];
        };
      };
      400: components['responses']['invalid_request'];
      408: components['responses']['request_timeout'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      /** @description Draining: send no more */
      503: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Readiness'];
        };
      };
    };
  };
  getSale: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        saleId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description At most a second old */
      200: {
        headers: {
          'Cache-Control': components['headers']['Cache-Control'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Sale'];
        };
      };
      400: components['responses']['invalid_request'];
      404: components['responses']['sale_not_found'];
      408: components['responses']['request_timeout'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      /** @description `gate_not_loaded`: The sale is being loaded. `gate_unavailable`: The gate cannot be reached. `ledger_unavailable`: The ledger cannot be reached */
      503: {
        headers: {
          'Retry-After': components['headers']['Retry-After'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'gate_not_loaded' | 'gate_unavailable' | 'ledger_unavailable';
          };
        };
      };
    };
  };
  saleEvents: {
    parameters: {
      query?: never;
      header?: {
        /** @description The `id` of the last event that was seen: nothing is told until something has changed since */
        'last-event-id'?: string;
      };
      path: {
        saleId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A stream of events. The data of `sale` is a document as `Sale` has it; its `id` is made from what it says, so that any process can go on from it. `unavailable` says with a `code` that it cannot be told now: the stream stays, and what is then is told when it can be */
      200: {
        headers: {
          'Cache-Control': components['headers']['Cache-Control'];
          [name: string]: unknown;
        };
        content: {
          'text/event-stream': string;
        };
      };
      /** @description Nothing will ever change after the event of `Last-Event-ID`: do not come back */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      400: components['responses']['invalid_request'];
      404: components['responses']['sale_not_found'];
      408: components['responses']['request_timeout'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      /** @description `ledger_unavailable`: The ledger cannot be reached. `overloaded`: Too many requests at once */
      503: {
        headers: {
          'Retry-After': components['headers']['Retry-After'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'ledger_unavailable' | 'overloaded';
          };
        };
      };
    };
  };
  getReservation: {
    parameters: {
      query: {
        userId: string;
      };
      header?: never;
      path: {
        reservationId: string;
        saleId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description As it is now */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Reservation'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['reservation_not_found'];
      408: components['responses']['request_timeout'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      /** @description `gate_unavailable`: The gate cannot be reached. `ledger_unavailable`: The ledger cannot be reached. `overloaded`: Too many requests at once */
      503: {
        headers: {
          'Retry-After': components['headers']['Retry-After'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'gate_unavailable' | 'ledger_unavailable' | 'overloaded';
          };
        };
      };
    };
  };
  cancelReservation: {
    parameters: {
      query: {
        userId: string;
      };
      header?: never;
      path: {
        reservationId: string;
        saleId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Given up, now or before */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['reservation_not_found'];
      408: components['responses']['request_timeout'];
      409: components['responses']['already_paid'];
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      /** @description `gate_unavailable`: The gate cannot be reached. `ledger_unavailable`: The ledger cannot be reached. `overloaded`: Too many requests at once */
      503: {
        headers: {
          'Retry-After': components['headers']['Retry-After'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'gate_unavailable' | 'ledger_unavailable' | 'overloaded';
          };
        };
      };
    };
  };
  openCheckout: {
    parameters: {
      query: {
        userId: string;
      };
      header?: never;
      path: {
        reservationId: string;
        saleId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Send the buyer to `url` */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['CheckoutPage'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['reservation_not_found'];
      408: components['responses']['request_timeout'];
      /** @description `already_paid`: The reservation is paid. `reservation_ended`: The reservation is over */
      409: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'already_paid' | 'reservation_ended';
          };
        };
      };
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      502: components['responses']['payment_provider_refused'];
      /** @description `payment_provider_unavailable`: The payment provider cannot be reached. `gate_unavailable`: The gate cannot be reached. `ledger_unavailable`: The ledger cannot be reached. `overloaded`: Too many requests at once */
      503: {
        headers: {
          'Retry-After': components['headers']['Retry-After'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'payment_provider_unavailable' | 'gate_unavailable' | 'ledger_unavailable' | 'overloaded';
          };
        };
      };
    };
  };
  reservationEvents: {
    parameters: {
      query: {
        userId: string;
      };
      header?: {
        /** @description The `id` of the last event that was seen: nothing is told until something has changed since */
        'last-event-id'?: string;
      };
      path: {
        reservationId: string;
        saleId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A stream of events. The data of `reservation` is a document as `Reservation` has it; its `id` is made from what it says, so that any process can go on from it. `unavailable` says with a `code` that it cannot be told now: the stream stays, and what is then is told when it can be */
      200: {
        headers: {
          'Cache-Control': components['headers']['Cache-Control'];
          [name: string]: unknown;
        };
        content: {
          'text/event-stream': string;
        };
      };
      /** @description Nothing will ever change after the event of `Last-Event-ID`: do not come back */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['reservation_not_found'];
      408: components['responses']['request_timeout'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      /** @description `gate_unavailable`: The gate cannot be reached. `ledger_unavailable`: The ledger cannot be reached. `overloaded`: Too many requests at once */
      503: {
        headers: {
          'Retry-After': components['headers']['Retry-After'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'gate_unavailable' | 'ledger_unavailable' | 'overloaded';
          };
        };
      };
    };
  };
  reserve: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        saleId: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': {
          /** @default 1 */
          qty?: number;
          userId: string;
        };
      };
    };
    responses: {
      /** @description The buyer’s own reservation, which they had already */
      200: {
        headers: {
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Reserved'];
        };
      };
      /** @description Won: to be paid before `expiresAt` */
      202: {
        headers: {
          Location: components['headers']['Location'];
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Reserved'];
        };
      };
      400: components['responses']['invalid_request'];
      401: components['responses']['unauthorized'];
      404: components['responses']['sale_not_found'];
      408: components['responses']['request_timeout'];
      /** @description `sold_out`: None are left. `not_started`: The sale has not started. `ended`: The sale has ended */
      409: {
        headers: {
          'Retry-After': components['headers']['RetryAfterSoldOut'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'sold_out' | 'not_started' | 'ended';
          };
        };
      };
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      422: components['responses']['qty_over_limit'];
      429: components['responses']['rate_limited'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      /** @description `paused`: The sale is paused. `gate_not_loaded`: The sale is being loaded. `gate_unavailable`: The gate cannot be reached. `queue_unavailable`: The queue cannot be reached. `ledger_unavailable`: The ledger cannot be reached. `overloaded`: Too many requests at once */
      503: {
        headers: {
          'Retry-After': components['headers']['Retry-After'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code:
              | 'paused'
              | 'gate_not_loaded'
              | 'gate_unavailable'
              | 'queue_unavailable'
              | 'ledger_unavailable'
              | 'overloaded';
          };
        };
      };
    };
  };
  receivePaymentEvent: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The event’s id: the same event again changes nothing
         * @example evt-1
         */
        'webhook-id': string;
        /**
         * @description Seconds since 1970, at most five minutes off
         * @example 1796047200
         */
        'webhook-timestamp': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "type": "payment.succeeded",
         *       "timestamp": "2026-11-29T20:46:02Z",
         *       "data": {
         *         "paymentId": "pay-1",
         *         "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
         *         "amount": 49900,
         *         "currency": "EUR"
         *       }
         *     }
         */
        'application/json': components['schemas']['PaymentEvent'];
      };
    };
    responses: {
      /** @description Durable; sent again, it changes nothing */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Received'];
        };
      };
      /** @description `invalid_request`: The request is not valid. `malformed_event`: This is not a payment event */
      400: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'invalid_request' | 'malformed_event';
          };
        };
      };
      /** @description `bad_signature`: The signature does not fit. `timestamp_out_of_range`: The timestamp is too far from now */
      401: {
        headers: {
          'WWW-Authenticate': components['headers']['WWW-Authenticate'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'bad_signature' | 'timestamp_out_of_range';
          };
        };
      };
      408: components['responses']['request_timeout'];
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  receiveProviderEvent: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': Record<string, never>;
      };
    };
    responses: {
      /** @description Durable; sent again, it changes nothing */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Received'];
        };
      };
      /** @description `invalid_request`: The request is not valid. `malformed_event`: This is not a payment event. `wrong_mode`: This event is of the other mode */
      400: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'invalid_request' | 'malformed_event' | 'wrong_mode';
          };
        };
      };
      /** @description `bad_signature`: The signature does not fit. `timestamp_out_of_range`: The timestamp is too far from now */
      401: {
        headers: {
          'WWW-Authenticate': components['headers']['WWW-Authenticate'];
          [name: string]: unknown;
        };
        content: {
          'application/problem+json': components['schemas']['Problem'] & {
            /** @enum {string} */
            code: 'bad_signature' | 'timestamp_out_of_range';
          };
        };
      };
      408: components['responses']['request_timeout'];
      413: components['responses']['payload_too_large'];
      415: components['responses']['unsupported_media_type'];
      431: components['responses']['headers_too_large'];
      500: components['responses']['internal_error'];
      503: components['responses']['ledger_unavailable'];
    };
  };
  paymentCanceled: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The event’s id: the same event again changes nothing
         * @example evt-1
         */
        'webhook-id': string;
        /**
         * @description Seconds since 1970, at most five minutes off
         * @example 1796047200
         */
        'webhook-timestamp': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "type": "payment.canceled",
         *       "timestamp": "2026-11-29T20:46:02Z",
         *       "data": {
         *         "paymentId": "pay-1",
         *         "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
         *         "amount": 49900,
         *         "currency": "EUR"
         *       }
         *     }
         */
        'application/json': components['schemas']['PaymentEvent'] & {
          /** @constant */
          type?: 'payment.canceled';
        };
      };
    };
    responses: {
      /** @description Durable; `outcome` says what came of it */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Received'];
        };
      };
    };
  };
  paymentFailed: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The event’s id: the same event again changes nothing
         * @example evt-1
         */
        'webhook-id': string;
        /**
         * @description Seconds since 1970, at most five minutes off
         * @example 1796047200
         */
        'webhook-timestamp': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "type": "payment.failed",
         *       "timestamp": "2026-11-29T20:46:02Z",
         *       "data": {
         *         "paymentId": "pay-1",
         *         "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
         *         "amount": 49900,
         *         "currency": "EUR"
         *       }
         *     }
         */
        'application/json': components['schemas']['PaymentEvent'] & {
          /** @constant */
          type?: 'payment.failed';
        };
      };
    };
    responses: {
      /** @description Durable; `outcome` says what came of it */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Received'];
        };
      };
    };
  };
  paymentSucceeded: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The event’s id: the same event again changes nothing
         * @example evt-1
         */
        'webhook-id': string;
        /**
         * @description Seconds since 1970, at most five minutes off
         * @example 1796047200
         */
        'webhook-timestamp': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "type": "payment.succeeded",
         *       "timestamp": "2026-11-29T20:46:02Z",
         *       "data": {
         *         "paymentId": "pay-1",
         *         "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
         *         "amount": 49900,
         *         "currency": "EUR"
         *       }
         *     }
         */
        'application/json': components['schemas']['PaymentEvent'] & {
          /** @constant */
          type?: 'payment.succeeded';
        };
      };
    };
    responses: {
      /** @description Durable; `outcome` says what came of it */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Received'];
        };
      };
    };
  };
  refundFailed: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The event’s id: the same event again changes nothing
         * @example evt-1
         */
        'webhook-id': string;
        /**
         * @description Seconds since 1970, at most five minutes off
         * @example 1796047200
         */
        'webhook-timestamp': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "type": "refund.failed",
         *       "timestamp": "2026-11-29T20:46:02Z",
         *       "data": {
         *         "paymentId": "pay-1",
         *         "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
         *         "amount": 49900,
         *         "currency": "EUR"
         *       }
         *     }
         */
        'application/json': components['schemas']['PaymentEvent'] & {
          /** @constant */
          type?: 'refund.failed';
        };
      };
    };
    responses: {
      /** @description Durable; `outcome` says what came of it */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Received'];
        };
      };
    };
  };
  refundSucceeded: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The event’s id: the same event again changes nothing
         * @example evt-1
         */
        'webhook-id': string;
        /**
         * @description Seconds since 1970, at most five minutes off
         * @example 1796047200
         */
        'webhook-timestamp': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "type": "refund.succeeded",
         *       "timestamp": "2026-11-29T20:46:02Z",
         *       "data": {
         *         "paymentId": "pay-1",
         *         "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
         *         "amount": 49900,
         *         "currency": "EUR"
         *       }
         *     }
         */
        'application/json': components['schemas']['PaymentEvent'] & {
          /** @constant */
          type?: 'refund.succeeded';
        };
      };
    };
    responses: {
      /** @description Durable; `outcome` says what came of it */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Received'];
        };
      };
    };
  };
  reservationCancelled: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The event’s id, the same for each time that it is sent: act once on it
         * @example 541460b2-8259-4f70-9018-0676e172f86a_paid
         */
        'webhook-id': string;
        /**
         * @description By the endpoint’s secret, `v1,` and HMAC-SHA256 in base64; while it is rotated one for each secret
         * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
         */
        'webhook-signature': string;
        /**
         * @description When this attempt was made, in seconds since 1970
         * @example 1796047200
         */
        'webhook-timestamp': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "type": "reservation.cancelled",
         *       "timestamp": "2026-11-29T20:46:02.301Z",
         *       "data": {
         *         "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
         *         "saleId": "sample",
         *         "userId": "u-1",
         *         "qty": 1,
         *         "amount": 49900,
         *         "currency": "EUR",
         *         "reservedAt": "2026-11-29T20:45:24.120Z",
         *         "expiresAt": "2026-11-29T20:55:24.120Z",
         *         "status": "CANCELLED",
         *         "reason": "by_buyer"
         *       }
         *     }
         */
        'application/json': components['schemas']['ReservationEvent'] & {
          /** @constant */
          type?: 'reservation.cancelled';
        };
      };
    };
    responses: {
      /** @description Delivered */
      '2XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Nothing more is sent to this endpoint until it is made active again */
      410: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Nothing is sent to this endpoint until `Retry-After`, then this event again */
      429: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description As 429 */
      503: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  reservationExpired: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The event’s id, the same for each time that it is sent: act once on it
         * @example 541460b2-8259-4f70-9018-0676e172f86a_paid
         */
        'webhook-id': string;
        /**
         * @description By the endpoint’s secret, `v1,` and HMAC-SHA256 in base64; while it is rotated one for each secret
         * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
         */
        'webhook-signature': string;
        /**
         * @description When this attempt was made, in seconds since 1970
         * @example 1796047200
         */
        'webhook-timestamp': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "type": "reservation.expired",
         *       "timestamp": "2026-11-29T20:46:02.301Z",
         *       "data": {
         *         "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
         *         "saleId": "sample",
         *         "userId": "u-1",
         *         "qty": 1,
         *         "amount": 49900,
         *         "currency": "EUR",
         *         "reservedAt": "2026-11-29T20:45:24.120Z",
         *         "expiresAt": "2026-11-29T20:55:24.120Z",
         *         "status": "EXPIRED"
         *       }
         *     }
         */
        'application/json': components['schemas']['ReservationEvent'] & {
          /** @constant */
          type?: 'reservation.expired';
        };
      };
    };
    responses: {
      /** @description Delivered */
      '2XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Nothing more is sent to this endpoint until it is made active again */
      410: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Nothing is sent to this endpoint until `Retry-After`, then this event again */
      429: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description As 429 */
      503: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  reservationPaid: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The event’s id, the same for each time that it is sent: act once on it
         * @example 541460b2-8259-4f70-9018-0676e172f86a_paid
         */
        'webhook-id': string;
        /**
         * @description By the endpoint’s secret, `v1,` and HMAC-SHA256 in base64; while it is rotated one for each secret
         * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
         */
        'webhook-signature': string;
        /**
         * @description When this attempt was made, in seconds since 1970
         * @example 1796047200
         */
        'webhook-timestamp': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "type": "reservation.paid",
         *       "timestamp": "2026-11-29T20:46:02.301Z",
         *       "data": {
         *         "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
         *         "saleId": "sample",
         *         "userId": "u-1",
         *         "qty": 1,
         *         "amount": 49900,
         *         "currency": "EUR",
         *         "reservedAt": "2026-11-29T20:45:24.120Z",
         *         "expiresAt": "2026-11-29T20:55:24.120Z",
         *         "status": "PAID"
         *       }
         *     }
         */
        'application/json': components['schemas']['ReservationEvent'] & {
          /** @constant */
          type?: 'reservation.paid';
        };
      };
    };
    responses: {
      /** @description Delivered */
      '2XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Nothing more is sent to this endpoint until it is made active again */
      410: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Nothing is sent to this endpoint until `Retry-After`, then this event again */
      429: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description As 429 */
      503: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  reservationRefunded: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The event’s id, the same for each time that it is sent: act once on it
         * @example 541460b2-8259-4f70-9018-0676e172f86a_paid
         */
        'webhook-id': string;
        /**
         * @description By the endpoint’s secret, `v1,` and HMAC-SHA256 in base64; while it is rotated one for each secret
         * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
         */
        'webhook-signature': string;
        /**
         * @description When this attempt was made, in seconds since 1970
         * @example 1796047200
         */
        'webhook-timestamp': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "type": "reservation.refunded",
         *       "timestamp": "2026-11-29T20:46:02.301Z",
         *       "data": {
         *         "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
         *         "saleId": "sample",
         *         "userId": "u-1",
         *         "qty": 1,
         *         "amount": 49900,
         *         "currency": "EUR",
         *         "reservedAt": "2026-11-29T20:45:24.120Z",
         *         "expiresAt": "2026-11-29T20:55:24.120Z",
         *         "status": "REFUNDED",
         *         "unitsReturned": true
         *       }
         *     }
         */
        'application/json': components['schemas']['ReservationEvent'] & {
          /** @constant */
          type?: 'reservation.refunded';
        };
      };
    };
    responses: {
      /** @description Delivered */
      '2XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Nothing more is sent to this endpoint until it is made active again */
      410: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Nothing is sent to this endpoint until `Retry-After`, then this event again */
      429: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description As 429 */
      503: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  reservationRejected: {
    parameters: {
      query?: never;
      header: {
        /**
         * @description The event’s id, the same for each time that it is sent: act once on it
         * @example 541460b2-8259-4f70-9018-0676e172f86a_paid
         */
        'webhook-id': string;
        /**
         * @description By the endpoint’s secret, `v1,` and HMAC-SHA256 in base64; while it is rotated one for each secret
         * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
         */
        'webhook-signature': string;
        /**
         * @description When this attempt was made, in seconds since 1970
         * @example 1796047200
         */
        'webhook-timestamp': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "type": "reservation.rejected",
         *       "timestamp": "2026-11-29T20:46:02.301Z",
         *       "data": {
         *         "reservationId": "541460b2-8259-4f70-9018-0676e172f86a",
         *         "saleId": "sample",
         *         "userId": "u-1",
         *         "qty": 1,
         *         "amount": 49900,
         *         "currency": "EUR",
         *         "reservedAt": "2026-11-29T20:45:24.120Z",
         *         "expiresAt": "2026-11-29T20:55:24.120Z",
         *         "status": "REJECTED",
         *         "reason": "no_room"
         *       }
         *     }
         */
        'application/json': components['schemas']['ReservationEvent'] & {
          /** @constant */
          type?: 'reservation.rejected';
        };
      };
    };
    responses: {
      /** @description Delivered */
      '2XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Nothing more is sent to this endpoint until it is made active again */
      410: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description Nothing is sent to this endpoint until `Retry-After`, then this event again */
      429: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
      /** @description As 429 */
      503: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
}
