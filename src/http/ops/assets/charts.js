// The last few minutes as lines, by uPlot. They live in the page only: the metrics are for longer times.

const POINTS = 300;
const HEIGHT = 180;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString('en-GB');

/** @param {[label: string, colour: string][]} lines @returns {(at: number, values: (number | null)[]) => void} adds a point */
export function chart(place, lines) {
  const data = [[], ...lines.map(() => [])];
  const axis = () => ({ stroke: colour('quiet'), grid: { stroke: colour('line') }, ticks: { stroke: colour('line') } });
  const options = () => ({
    width: Math.max(200, place.clientWidth),
    height: HEIGHT,
    cursor: { show: false },
    legend: { live: false },
    scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, high ?? 1) * 1.05] } },
    axes: [
      { ...axis(), space: 90, values: (_, splits) => splits.map(clock) },
      { ...axis(), size: 56 },
    ],
    series: [{}, ...lines.map(([label, name]) => ({ label, stroke: colour(name), width: 2, points: { show: false } }))],
  });
  let plot;
  const draw = () => {
    plot?.destroy();
    plot = new uPlot(options(), data, place);
    label();
  };
  // What the lines show is also in the figures above, as text.
  const label = () => {
    const canvas = place.querySelector('canvas');
    canvas?.setAttribute('role', 'img');
    canvas?.setAttribute('aria-label', `${lines.map(([name]) => name).join(', ')}, over the last minutes`);
  };
  draw();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  new ResizeObserver(() => plot.setSize({ width: Math.max(200, place.clientWidth), height: HEIGHT })).observe(place);
  return (at, values) => {
    if (at <= data[0].at(-1)) return; // read a moment ago, for another page
    data[0].push(at);
    values.forEach((value, n) => data[n + 1].push(value));
    if (data[0].length > POINTS) for (const column of data) column.shift();
    plot.setData(data);
  };
}
