/** How much of everything is measured: enough for figures that stand, or just enough to see that it runs. */

export const FULL = {
  quick: false,
  /** The rush: buyers, units, rounds over few and over many connections. */
  rush: {
    ...{ buyers: 20_000, units: 100, rounds: 2, againForMs: 2_500, connections: 200, profiled: 5 },
    ...{ manyRounds: 1, manyConnections: 19_000 },
  },
  refusal: { requests: 20_000, rounds: 9, profiled: 40_000 },
  gate: { batches: [1, 16, 64, 256, 1024], decisions: 400_000, perRequest: 60_000, units: 20_480, rounds: 3 },
  ledger: {
    ...{ orders: 20_000, plain: 2_000, batches: [10, 500], queued: 6_000, queuedPlain: 800, rounds: 2 },
    ...{ receivers: [4, 16, 48], inFlight: [1, 4, 16] },
  },
  ladder: {
    ...{ rates: [500, 2_000, 8_000, 16_000, 32_000, 64_000], units: [100, 5_000] },
    ...{ seconds: 1.5, quietSeconds: 1, askedUpTo: 8_000 },
  },
  flat: { units: [100, 10_000, 1_000_000], requests: 20_000, buyers: [20_000, 200_000, 2_000_000] },
  telemetry: { requests: 20_000, wins: 2_000, rounds: 4 },
  listeners: { requests: 30_000, listeners: 5_000, rounds: 3, changes: 8 },
  times: { returns: 15, winners: [100, 1_000, 10_000, 100_000] },
};
export type Sizes = typeof FULL;

export const QUICK: Sizes = {
  quick: true,
  rush: {
    ...{ buyers: 500, units: 100, rounds: 1, againForMs: 0, connections: 100, profiled: 1 },
    ...{ manyRounds: 1, manyConnections: 500 },
  },
  refusal: { requests: 2_000, rounds: 1, profiled: 3_000 },
  gate: { batches: [1, 16, 256], decisions: 20_000, perRequest: 4_000, units: 10_240, rounds: 1 },
  ledger: {
    ...{ orders: 2_000, plain: 200, batches: [500], queued: 300, queuedPlain: 60, rounds: 1 },
    ...{ receivers: [], inFlight: [1] },
  },
  ladder: { rates: [1_000], units: [100], seconds: 0.5, quietSeconds: 0.25, askedUpTo: 1_000 },
  flat: { units: [100, 10_000], requests: 2_000, buyers: [2_000, 10_000] },
  telemetry: { requests: 2_000, wins: 300, rounds: 1 },
  listeners: { requests: 2_000, listeners: 300, rounds: 1, changes: 2 },
  times: { returns: 1, winners: [100, 500] },
};
