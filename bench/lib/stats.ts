/** Medians, quantiles and spread of a handful of rounds, and numbers as people read them. */

/** The value below which a share of the sorted values lies (nearest rank). @throws {Error} without values */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const found = sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))];
  if (found === undefined) throw new Error('no value was measured');
  return found;
}

/** The middle value; of an even count the mean of the two in the middle. @throws {Error} without values */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [below, above] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[Math.floor(sorted.length / 2)]];
  if (below === undefined || above === undefined) throw new Error('no value was measured');
  return (below + above) / 2;
}

/** Half the distance between the least and the largest value, as a share of the median: 0.05 is ±5 %. @throws {Error} without values */
export function spread(values: readonly number[]): number {
  const middle = median(values);
  return middle === 0 ? 0 : (Math.max(...values) - Math.min(...values)) / 2 / Math.abs(middle);
}

/** Three significant digits, thousands set off: 12,300 · 45.6 · 0.789. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const rounded = Number(value.toPrecision(3));
  return rounded.toLocaleString('en-US', { maximumFractionDigits: 6 });
}

/** The median with its spread: 12.3 ±4 %. Of one value there is no spread, and none is told. @throws {Error} without values */
export function withSpread(values: readonly number[]): string {
  if (values.length === 1) return digits(median(values));
  return `${digits(median(values))} ±${Math.round(spread(values) * 100)} %`;
}
