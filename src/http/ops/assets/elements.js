// Small helpers around the document. Everything that comes from elsewhere becomes text, never markup.

export const $ = (id) => document.getElementById(id);

/** @param {string} name @param {Record<string, string>} attributes @param {...(string | Node)} children */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Writes only what changed, so that nothing is drawn, or read aloud, without need. */
export function write(id, text) {
  const element = $(id);
  if (element && element.textContent !== text) element.textContent = text;
}

const whole = new Intl.NumberFormat('en');
export const number = (n) => (n === null || n === undefined ? '–' : whole.format(Math.round(n)));
const clock = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
export const time = (text) => make('time', { datetime: text }, clock.format(new Date(text)));
export const ms = (n) =>
  n === null || n === undefined
    ? '–'
    : n >= 10_000
      ? `${number(n / 1000)} s`
      : `${n < 10 ? n.toFixed(1) : number(n)} ms`;

/** A table that scrolls by itself where there is no room. @param {[string, string?][]} heads name, class */
export function table(label, heads, rows) {
  const head = make('tr', {}, ...heads.map(([name, kind = '']) => make('th', { scope: 'col', class: kind }, name)));
  const body = rows.map((cells) =>
    make('tr', {}, ...cells.map((cell, n) => make('td', { class: heads[n]?.[1] ?? '' }, cell))),
  );
  const made = make('table', {}, make('thead', {}, head), make('tbody', {}, ...body));
  return make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `${label}, table` }, made);
}

let quiet;
/** Says something that goes away again; screen readers read it. */
export function say(text) {
  $('said').textContent = text;
  clearTimeout(quiet);
  quiet = setTimeout(() => ($('said').textContent = ''), 6000);
}
