// What the room shows is said by its address: all sales, or one.
import { call, session } from './api.js';
import { $, make, number, say, time } from './elements.js';
import { journal } from './lists.js';
import { showSale } from './sale.js';

const LIST_EVERY_MS = 2000;

/** A view that is on its own: its template, filled. */
function show(view) {
  $('main').replaceChildren($(view).content.cloneNode(true));
}

async function showList(may) {
  show('list-view');
  if (may.rush) rushForm();
  const journalOfAll = journal($('journal'), null);
  await Promise.all([listSales(), journalOfAll()]);
  const again = async () => {
    await listSales().catch((error) => say(`The sales cannot be read: ${error.message}`));
    setTimeout(again, LIST_EVERY_MS);
  };
  setTimeout(again, LIST_EVERY_MS);
}

let shown = '';
async function listSales() {
  const { sales } = await call('GET', '/ops/sales');
  const text = JSON.stringify(sales);
  if (text === shown) return;
  shown = text;
  const newestFirst = sales.toSorted((a, b) => b.startsAt.localeCompare(a.startsAt));
  // A link that has the focus keeps it: rows are made once, by the sale's id, and only their figures change.
  $('sales').replaceChildren(...newestFirst.map(row));
}

const rows = new Map();
function row(sale) {
  const known =
    rows.get(sale.saleId) ??
    make(
      'tr',
      {},
      make('td', {}, make('a', { href: `/ops/sales/${sale.saleId}` })),
      make('td'),
      make('td', { class: 'n' }),
      make('td', { class: 'n' }),
      make('td'),
    );
  rows.set(sale.saleId, known);
  const [name, state, total, sold, ends] = known.children;
  name.firstChild.textContent = `${sale.name} (${sale.saleId})`;
  state.replaceChildren(make('span', { class: 'state', 'data-state': sale.state }, sale.state));
  total.textContent = number(sale.total);
  sold.textContent = number(sale.sold);
  ends.replaceChildren(time(sale.endsAt));
  return known;
}

function rushForm() {
  $('rush').hidden = false;
  $('rush-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    const given = Object.fromEntries([...new FormData(event.target)].map(([name, value]) => [name, Number(value)]));
    try {
      const { saleId } = await call('POST', '/ops/rush', given);
      location.assign(`/ops/sales/${saleId}`);
    } catch (error) {
      say(`Not started: ${error.message}`);
    }
  });
}

$('sign-out').addEventListener('click', async () => {
  await call('DELETE', '/ops/session');
  location.assign('/ops');
});

const may = await session();
const [, saleId] = /^\/ops\/sales\/([\w-]+)$/.exec(location.pathname) ?? [];
if (saleId === undefined) await showList(may);
else {
  show('sale-view');
  await showSale(saleId, may);
}
