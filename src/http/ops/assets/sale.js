// One sale as it happens: figures and charts from the stream, lists that follow what the stream says is new.
import { call } from './api.js';
import { allow, changeButtons } from './changes.js';
import { chart } from './charts.js';
import { $, make, ms, number, say, table, time, write } from './elements.js';
import { journal, reservations } from './lists.js';

const KINDS = [
  ['ok', 'one'],
  ['sold_out', 'two'],
  ['dup', 'three'],
  ['others', 'four'],
];

export async function showSale(saleId, may) {
  let sale;
  const form = $('search');
  const found = reservations($('reservations'), saleId, () => Object.fromEntries(new FormData(form)));
  // A list that grew while it is read would push away what is below it: it says that it is old instead.
  let listed = '';
  const search = async () => {
    await found();
    listed = '';
    write('reservations-age', `as of ${new Date().toLocaleTimeString('en-GB')}`);
  };
  const showAge = ({ ledger }) => {
    if (!ledger) return;
    const now = JSON.stringify(ledger.byStatus);
    listed ||= now;
    if (listed !== now) write('reservations-age', 'Orders have changed since: Search shows them.');
  };
  const entries = journal($('journal'), saleId);
  const told = (work) => work().catch((error) => say(error.message));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void told(search);
  });
  changeButtons(
    () => sale,
    () => void told(entries),
  );
  $('audit').addEventListener('click', () => void told(() => startAudit(saleId)));
  const add = {
    units: chart($('units-chart'), [
      ['left', 'one'],
      ['held', 'two'],
      ['paid', 'three'],
    ]),
    answers: chart($('answers-chart'), KINDS),
    latency: chart($('latency-chart'), [
      ['gate p50', 'one'],
      ['gate p99', 'two'],
      ['lag', 'three'],
    ]),
  };
  await Promise.all([told(search), told(entries), told(() => showAudit(saleId))]);
  if (may.rush) void told(() => showRush(saleId));

  let seen = {};
  listen(saleId, (figures) => {
    if (figures.sale) {
      sale = figures.sale;
      showSettings(sale);
    }
    showFigures(figures);
    showAgainst(figures);
    showAge(figures);
    plot(add, figures);
    const { journal: now } = figures;
    if (now && seen.newest !== undefined && now.newest !== seen.newest) void told(entries);
    if (now && seen.audit !== undefined && now.audit !== seen.audit) void told(() => showAudit(saleId));
    seen = now ?? seen;
  });
}

/** The browser connects again by itself, unless it was refused. */
function listen(saleId, tell) {
  const source = new EventSource(`/ops/events?sale=${saleId}`);
  source.addEventListener('figures', ({ data }) => {
    write('live', 'live, every second');
    tell(JSON.parse(data));
  });
  source.addEventListener('unavailable', () => write('live', 'the figures cannot be read at the moment'));
  source.addEventListener('error', () => {
    if (source.readyState !== EventSource.CLOSED) write('live', 'connection lost, connecting again');
    else
      call('GET', `/ops/sales/${saleId}/audit`).then(
        () => write('live', 'not live any more: load the page again'),
        ({ message }) => write('live', message),
      );
  });
  addEventListener('pagehide', () => source.close());
}

function showSettings(sale) {
  document.title = `${sale.name} · flashgate operations`;
  write('name', sale.name);
  write('state', sale.state);
  $('state').dataset.state = sale.state;
  write('window', `${sale.saleId}, ends ${time(sale.endsAt).textContent}`);
  allow(sale);
}

function showFigures({ gate, ledger, queue, lag, speed, sale, gateNotLoaded, away }) {
  write('left', gate ? number(Math.max(0, gate.stock)) : '–');
  write('held', number(unpaid(gate, ledger)));
  write('paid', number(ledger?.byStatus.PAID));
  write('total', number(sale?.total));
  write('queue', queue ? number(queue.waiting + queue.inFlight) : '–');
  write('lag', ms(lag?.medianMs));
  write('gate-p99', ms(speed?.gateMs?.p99));
  write('answers', speed ? number(total(speed)) : '–');
  const missing = [
    ...away,
    ...(gateNotLoaded && sale?.state !== 'closed' ? ['the gate of this sale, which is not loaded'] : []),
  ];
  if (missing.length > 0) write('live', `without ${missing.join(' and ')}`);
}

/** Held at the gate and not paid: what may still come back. */
const unpaid = (gate, ledger) => (gate && ledger ? Math.max(0, gate.held - ledger.byStatus.PAID) : null);
const total = ({ answers }) => Object.values(answers).reduce((sum, n) => sum + n, 0);

function showAgainst({ gate, ledger, drift, sale }) {
  for (const name of ['total', 'held', 'stock', 'forfeited', 'unqueued', 'settings'])
    write(`g-${name}`, number(gate?.[name]));
  write('l-total', number(ledger?.total));
  write('l-sold', number(ledger?.sold));
  write('l-free', ledger ? number(ledger.total - ledger.sold) : '–');
  write('l-settings', number(sale?.settings));
  const words =
    drift === null
      ? '\u00a0'
      : drift === 0
        ? 'Gate and ledger agree.'
        : drift > 0
          ? `${number(drift)} units are won and on their way to the ledger.`
          : `The gate lacks ${number(-drift)} units that the ledger has.`;
  write('drift', words);
}

function plot(add, { at, gate, ledger, lag, speed }) {
  const seconds = Date.parse(at) / 1000;
  add.units(seconds, [gate ? Math.max(0, gate.stock) : null, unpaid(gate, ledger), ledger?.byStatus.PAID ?? null]);
  const known = KINDS.slice(0, -1).map(([kind]) => speed?.answers[kind] ?? (speed ? 0 : null));
  add.answers(seconds, [...known, speed ? total(speed) - known.reduce((sum, n) => sum + n, 0) : null]);
  add.latency(seconds, [speed?.gateMs?.p50 ?? null, speed?.gateMs?.p99 ?? null, lag?.medianMs ?? null]);
}

async function startAudit(saleId) {
  await call('POST', `/ops/sales/${saleId}/audit`);
  $('audit').disabled = true;
  write('verdict', 'running: a mismatch counts if it lasts');
}

const VERDICTS = { holds: 'all checks hold', broken: 'BROKEN', unjudged: 'COULD NOT JUDGE' };

async function showAudit(saleId) {
  const { running, last } = await call('GET', `/ops/sales/${saleId}/audit`);
  $('audit').disabled = running?.saleId === saleId;
  if (running?.saleId === saleId) write('verdict', 'running: a mismatch counts if it lasts');
  else if (last) showVerdict(last);
}

function showVerdict({ at, outcome, reason, after }) {
  const words = outcome === 'done' ? VERDICTS[after.verdict] : `failed: ${reason}`;
  const good = outcome === 'done' && after.verdict === 'holds';
  $('verdict').replaceChildren(make('span', { class: good ? 'good' : 'trouble' }, words), ', ', time(at));
  $('checks').hidden = outcome !== 'done';
  if (outcome !== 'done') return;
  const rows = after.checks.map(({ name, looked, broken, examples }) => [
    name,
    number(looked),
    broken === 0
      ? 'holds'
      : `BROKEN ${number(broken)}×: ${examples.map(({ subject, found }) => `${subject}: ${found}`).join('; ')}`,
  ]);
  const unjudged = after.unjudged.map(({ what, why }) => make('p', { class: 'trouble' }, `${what}: ${why}`));
  $('check-list').replaceChildren(
    ...unjudged,
    table('Checks of the audit', [['Check', 'id'], ['Looked at', 'n'], ['Verdict']], rows),
  );
}

const RUSH_EVERY_MS = 1000;

/** Until the rush of this sale has a result. */
async function showRush(saleId) {
  const { running, last } = await call('GET', `/ops/sales/${saleId}/rush`);
  const isOurs = running?.saleId === saleId;
  if (!isOurs && !last) return;
  $('rush-result').hidden = false;
  if (last) {
    write('rush-line', last.outcome === 'done' ? verdictOf(last.after) : `It failed: ${last.reason}`);
    if (last.outcome === 'done') $('rush-report').replaceChildren(rushTable(last.after));
    return;
  }
  write('rush-line', running.line || 'The crowd is gathering.');
  setTimeout(() => void showRush(saleId).catch(({ message }) => say(message)), RUSH_EVERY_MS);
}

function verdictOf({ checks, audit }) {
  const broken = checks.filter(({ failures }) => failures.length > 0);
  const told =
    broken.length === 0
      ? 'What everybody was told is what the ledger has'
      : `BROKEN: ${broken.map(({ claim }) => claim).join('; ')}`;
  return `${told}. Audit: ${VERDICTS[audit?.verdict] ?? 'left out'}.`;
}

function rushTable({ requests, perSecond, winners, orders, answers }) {
  const counts = { requests, 'a second': perSecond, winners, ...orders };
  const rows = [...Object.entries(counts), ...answers.map(({ kind, count }) => [`answer ${kind}`, count])];
  return table(
    'Result of the rush',
    [['Figure'], ['Result', 'n']],
    rows.map(([name, n]) => [name, number(n)]),
  );
}
