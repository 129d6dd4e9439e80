// Lists with pages: reservations, and the admin journal.
import { call } from './api.js';
import { make, number, table, time } from './elements.js';

/** Shows a page, and a button for the next one. @param load @param cells of a row @returns a function that loads anew */
function pages(place, label, heads, cells, load) {
  return async () => {
    const rows = [];
    const show = async (before) => {
      const { items, next } = await load(before);
      rows.push(...items.map(cells));
      const shown = rows.length === 0 ? make('p', { class: 'quiet' }, 'none') : table(label, heads, rows);
      place.replaceChildren(shown);
      if (next === null) return;
      const more = make('button', { type: 'button', class: 'plain more' }, 'Older ones');
      more.addEventListener('click', () => void show(next));
      place.append(more);
    };
    await show(null);
  };
}

const address = (path, query) => {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== '');
  return `${path}?${new URLSearchParams(Object.fromEntries(given))}`;
};

export function reservations(place, saleId, wanted) {
  const heads = [
    ['Buyer', 'id'],
    ['Status'],
    ['Units', 'n'],
    ['Price', 'n'],
    ['Reserved'],
    ['Pay until'],
    ['Reservation', 'id'],
  ];
  const cells = (each) => [
    each.userId,
    [each.status, each.reason, each.refund && `refund ${each.refund}`].filter(Boolean).join(', '),
    number(each.qty),
    money(each),
    time(each.reservedAt),
    time(each.expiresAt),
    each.reservationId,
  ];
  return pages(place, 'Reservations', heads, cells, async (before) => {
    const { orders, next } = await call('GET', address(`/ops/sales/${saleId}/reservations`, { ...wanted(), before }));
    return { items: orders, next };
  });
}

function money({ amount, currency }) {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency });
  return format.format(amount / 10 ** format.resolvedOptions().maximumFractionDigits);
}

/** @param {string | null} saleId null: of all sales */
export function journal(place, saleId) {
  const heads = [
    ['When'],
    ['What'],
    ...(saleId === null ? [['Sale or endpoint', 'id']] : []),
    ['Outcome'],
    ['Who', 'id'],
  ];
  const cells = (each) => [
    time(each.at),
    `${each.action}${changed(each)}`,
    ...(saleId === null ? [subject(each)] : []),
    each.reason ? `${each.outcome}: ${each.reason}` : each.outcome,
    each.session ? `session ${each.session}` : each.who === 'token' ? 'API token' : 'command line',
  ];
  return pages(place, 'Admin journal', heads, cells, async (before) => {
    const { entries, next } = await call('GET', address('/ops/journal', { sale: saleId, before }));
    return { items: entries, next };
  });
}

/** What an entry is about. Endpoints of webhooks have no page of their own. */
function subject({ saleId, endpointId }) {
  return saleId ? make('a', { href: `/ops/sales/${saleId}` }, saleId) : `webhooks: ${endpointId}`;
}

/** What became different, in words: `total 100 → 120`. */
function changed({ action, before, after }) {
  if (after?.verdict) return `: ${after.verdict}`;
  if (action === 'rush' && after?.audit) return `: audit ${after.audit.verdict}`;
  if (!before || !after) return '';
  const different = Object.keys(after).filter(
    (key) => key !== 'settings' && String(before[key]) !== String(after[key]),
  );
  return different.map((key) => `: ${key} ${before[key] ?? '–'} → ${after[key]}`).join('');
}
