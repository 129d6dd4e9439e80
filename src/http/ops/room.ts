/** What the operations room is given by whoever starts it: what HTTP cannot do by itself. */

/** A rush that a person may start: only where the whole system runs for a demonstration. */
export type Rush = {
  /** Resolves with its report, or rejects with why there is none. @param onLine is told its progress */
  run: (options: RushOptions, onLine: (line: string) => void) => Promise<object>;
};
export type RushOptions = { saleId: string; buyers: number; overSeconds: number };

export type Room = {
  /** The metrics of all API processes behind this port, in Prometheus' text format. */
  metrics: () => Promise<string>;
  /** Runs an audit of one sale, apart from this process' work; resolves with its report. */
  audit: (saleId: string) => Promise<object>;
  rush?: Rush;
  /** Ends what is still running. */
  close: () => void;
};
