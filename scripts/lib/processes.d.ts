/** Whether `pid` runs and its command line contains `marker`. */
export function isRunning(pid: number, marker: string): boolean;
