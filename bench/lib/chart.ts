/** Charts as SVG: horizontal bars, plain enough for both light and dark pages. */

/** `label` stands for the value if it is to be read otherwise. */
export type Bar = { name: string; value: number; label?: string };
/** `file`: its name in the folder of charts. */
export type Chart = { file: string; title: string; bars: Bar[] };

const WIDTH = 760;
const NAMES = 230;
const ROW = 26;
const TOP = 40;
const LABELS = 120;

const escape = (text: string) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** @returns the SVG document */
export function draw({ title, bars }: Chart): string {
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const rows = bars.map(({ name, value, label }, n) => {
    const y = TOP + n * ROW;
    const length = Math.max(1, ((WIDTH - NAMES - LABELS) * value) / most);
    return (
      `<text x="${NAMES - 8}" y="${y + 15}" text-anchor="end">${escape(name)}</text>` +
      `<rect x="${NAMES}" y="${y + 3}" width="${length.toFixed(1)}" height="${ROW - 9}" rx="2" fill="#3b82c4"/>` +
      `<text x="${(NAMES + length + 6).toFixed(1)}" y="${y + 15}">${escape(label ?? value.toLocaleString('en-US', { maximumSignificantDigits: 3 }))}</text>`
    );
  });
  const height = TOP + bars.length * ROW + 10;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="13" fill="#6b7280" role="img">`,
    `<title>${escape(title)}</title>`,
    `<text x="0" y="20" font-size="15" font-weight="600">${escape(title)}</text>`,
    ...rows,
    '</svg>',
    '',
  ].join('\n');
}
