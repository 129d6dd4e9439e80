import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global.ts'],
    // Processes, not threads: a test may then end its servers with itself, and a stuck one can be killed.
    pool: 'forks',
    // The servers of one run need cores too: with three, tests that wait for processes need their retry on a slow machine.
    maxWorkers: 2,
    // For a machine that is slow, not for a test that is: the slow ones say so themselves.
    testTimeout: 20_000,
    hookTimeout: 60_000,
    teardownTimeout: 30_000,
  },
});
