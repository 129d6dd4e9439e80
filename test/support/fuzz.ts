/** How long the random tests run: FUZZ_RUNS cases of each kind, beginning at FUZZ_SEED. CI runs the short one. */
export const runs = Number(process.env['FUZZ_RUNS'] ?? 2000);
export const seed = Number(process.env['FUZZ_SEED'] ?? 20_260_801);
