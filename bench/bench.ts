/** What every part of the bench is given, and what it hands back. */
import type { ChildProcess } from 'node:child_process';
import type { Redis } from 'ioredis';
import type pg from 'pg';
import type { Load } from './lib/load.ts';
import type { Sizes } from './sizes.ts';
import type { Chart } from './lib/chart.ts';

/** Starts `flashgate` with arguments and an environment; ended with the bench. */
export type StartFlashgate = (
  args: string[],
  options: { env: Record<string, string>; stdio: 'ignore' | 'inherit' | ['ignore', number, number] },
) => ChildProcess & { done: Promise<number> };

export type Secrets = { SERVICE_TOKEN: string; ADMIN_TOKEN: string; WEBHOOK_SECRET: string };

export type Bench = {
  sizes: Sizes;
  /** Addresses of the stores, as environment variables. */
  env: Record<string, string>;
  /** For files of this run, removed at its end. */
  folder: string;
  secrets: Secrets;
  /** flashgate's own database. */
  pool: pg.Pool;
  /** The plain designs' database, on the same server. */
  peers: { url: string; pool: pg.Pool };
  redis: Redis;
  /** The worker is flashgate's, and drains its queue from the beginning to the end. */
  pids: { redis: number; postgres: number; worker: number };
  load: Load;
  flashgate: StartFlashgate;
  /** One line of progress. */
  say: (line: string) => void;
};

/** A figure of DESIGN's "Numbers to reach", and whether this run reached it. */
export type Goal = { what: string; goal: string; measured: string; met: boolean };

export type Section = {
  title: string;
  /** Markdown: what was done, tables, and what to make of them. */
  text: string[];
  goals?: Goal[];
  charts?: Chart[];
  /** Figures by name, for the documents that quote them. */
  figures?: Record<string, string>;
  /** One line per round, as measured. */
  raw: string[];
};

export type Part = { name: string; run: (bench: Bench) => Promise<Section> };
