/** A local server. `pid` is that of the present process, also after a restart. */
export type Server = {
  name: string;
  port: number;
  readonly pid: number;
  /** How the present process ended, once it has. */
  readonly exited: Promise<string>;
  kill(signal: NodeJS.Signals): void;
  /** Ends it if it still runs, and starts it again on the same port, with the same data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
};
type Env = Record<string, string>;
type PickPort = () => Promise<number>;

export function startPostgres(options: {
  folder: string;
  keep?: boolean;
  fast?: boolean;
  pickPort?: PickPort;
}): Promise<Server & { url: string; version: string; isNew: boolean }>;
export function startRedis(options: {
  folder: string;
  say(line: string): void;
  durable?: boolean;
  more?: (port: number) => Record<string, string | number>;
  pickPort?: PickPort;
}): Promise<Server & { url: string; version: string }>;
export function startSentinel(options: {
  folder: string;
  say(line: string): void;
  name: string;
  master: number;
}): Promise<Server & { url: string }>;
export function startQueue(options: { folder: string; pickPort?: PickPort }): Promise<Server & { env: Env }>;
export function createQueues(options: {
  env: Env;
  name: string;
  visibilitySeconds?: number;
}): Promise<{ queueUrl: string; dlqUrl: string }>;
export function deleteQueues(options: { env: Env; urls: string[] }): Promise<void>;

/**
 * A Redis or Valkey to run: from PATH, or from the distribution's package unpacked into `home`.
 * @throws naming the command to type
 */
export function findRedis(
  say: (line: string) => void,
  home?: string,
): Promise<{ path: string; version: string; env: Env }>;

/** A port of 127.0.0.1 that was free a moment ago. */
export function freePort(): Promise<number>;
