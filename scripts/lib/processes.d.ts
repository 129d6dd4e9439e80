import type { ChildProcess, SpawnOptions } from 'node:child_process';

/** Whether `pid` runs and its command line contains `marker`. */
export function isRunning(pid: number, marker: string): boolean;
/** Spawns a process in a session of its own; it is sent `onParentDeath` (default SIGTERM) when this process is gone. */
export function spawnDetached(
  command: string,
  args: string[],
  options: SpawnOptions & { onParentDeath?: NodeJS.Signals },
): ChildProcess;
