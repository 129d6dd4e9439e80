export type Services = {
  /** DATABASE_URL, REDIS_URL, SQS_QUEUE_URL and their companions, for a child process. */
  env: Record<string, string>;
  /** This run's own folder, removed at its end. */
  folder: string;
  /** Names a process that is to be ended before the servers. */
  guard(pid: number, marker: string): void;
  stop(): Promise<void>;
};

export function startServices(options: {
  name: string;
  keep?: boolean;
  fast?: boolean;
  say?: (line: string) => void;
  onLost?: (reason: string) => void;
}): Promise<Services>;
