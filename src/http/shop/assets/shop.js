/** The shop's page: keeps what is known up to date, draws its screen (screens.js), and passes presses on. */
import { countdown, ServerClock } from './clock.js';
import { about, ask, listen, poll } from './connection.js';
import { isHeld, screenOf } from './screens.js';
import { money } from './words.js';

/** @typedef {import('./screens.js').View} View */
/** @typedef {import('./screens.js').Press} Press */

/** Refusals after which the page tries again by itself: nothing was decided. */
const AGAIN = [
  ...['gate_not_loaded', 'gate_unavailable', 'queue_unavailable', 'ledger_unavailable', 'keys_unavailable'],
  ...['overloaded', 'rate_limited', 'no_answer', 'not_started'],
];
const AGAIN_SECONDS = 2;
const GOOD_NEWS_MS = 3000;
const TICK_MS = 200;
const LAST_CALL_MS = 60_000;

const { saleId = '', view: firstView = '' } = document.body.dataset;
const at = `/shop/${saleId}`;
const part = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const [title, text, timer, actions, stage] = ['title', 'text', 'timer', 'actions', 'stage'].map(part);
const [price, stock, left, news, connection] = ['price', 'stock', 'left', 'news', 'connection'].map(part);
const bar = /** @type {HTMLProgressElement} */ (part('bar'));
const clock = new ServerClock();
const tabs = new BroadcastChannel(`shop ${saleId}`);

/** @type {import('./screens.js').Known} */
let known = { sale: null, reservation: null, lost: false, refusal: null, paid: false };
/** @type {Press | null} */
let pressing = null;
/** Looks that were begun before the last press was answered tell what was before it. */
let presses = 0;

/**
 * @param {View} view
 * @param {Press} [press] whose answer it is
 */
function accept(view, press) {
  const { refused } = view;
  const held = view.reservation ?? (view.lost ? null : known.reservation);
  known = { ...known, reservation: held, lost: view.lost, paid: view.paid === true || (known.paid && isHeld(held)) };
  clock.told(view.reservation?.reservedAt); // a sale's figures may be a second old
  if (view.sale) acceptSale(view.sale);
  if (press || refused?.code === 'no_cookies') known.refusal = refused && refusalOf(refused, press ?? 'buy');
  if (known.refusal && known.sale) known.sale = asRefused(known.sale, known.refusal);
  if (view.payAt) location.assign(view.payAt);
  draw();
  keepUpToDate();
}

/** @param {import('./screens.js').Sale} sale */
function acceptSale(sale) {
  clock.told(sale.serverTime);
  known.sale = sale;
  const { refusal } = known;
  // A figure that is younger than "sold out" knows better.
  const isBack = refusal?.code === 'sold_out' && sale.unitsLeft && Date.parse(sale.serverTime) > refusal.saidAt;
  if (isBack) known.refusal = null;
}

/**
 * @param {import('./screens.js').Refused} refused
 * @param {Press} press
 * @returns {import('./screens.js').Refusal}
 */
function refusalOf(refused, press) {
  const saidAt = clock.now();
  const again = AGAIN.includes(refused.code);
  const pause = (refused.retryAfter ?? AGAIN_SECONDS) * 1000 + (again ? Math.random() * 1000 : 0);
  return { ...refused, press, saidAt, until: saidAt + pause, again };
}

/**
 * What a refusal says of the sale is newer than the figures beside it.
 * @param {import('./screens.js').Sale} sale
 * @param {import('./screens.js').Refusal} refusal
 */
function asRefused(sale, { code }) {
  return code === 'paused' || code === 'ended' ? { ...sale, state: code } : sale;
}

/** Asks how things are. */
async function look() {
  const before = presses;
  const view = await ask('GET', `${at}/view`);
  tellConnection(view !== undefined);
  if (view && before === presses && !pressing) accept(view);
}

/** @param {Press} which */
async function press(which) {
  if (pressing) return;
  pressing = which;
  draw();
  const view = await ask('POST', `${at}/${which}`);
  pressing = null;
  presses += 1;
  tellConnection(view !== undefined);
  // No answer is no no: what became of the press shows when it is made again.
  if (view) accept(view, which);
  else known.refusal = refusalOf({ code: 'no_answer' }, which);
  tabs.postMessage('pressed');
  draw();
}

/** @type {(() => void) | undefined} */
let stopSale;
/** @type {(() => void) | undefined} */
let stopHold;
/** @type {(() => void) | undefined} */
let stopPolling;
const heard = { sale: false, hold: false };

/** Streams for a page that is looked at, and polling for what no stream tells. */
function keepUpToDate() {
  const seen = document.visibilityState === 'visible';
  if (seen && !stopSale) {
    stopSale = stream('sale', `/sales/${saleId}/events`, 'sale', (sale) => {
      acceptSale(/** @type {import('./screens.js').Sale} */ (sale));
      draw();
    });
  } else if (!seen) stopSale = ended(stopSale);
  const waits = seen && isHeld(known.reservation);
  // Its data is the reservation; the sale goes with it, so all is asked for anew.
  if (waits && !stopHold) stopHold = stream('hold', `${at}/events`, 'reservation', () => void look());
  else if (!waits) stopHold = ended(stopHold);
  const told = heard.sale && (!waits || (heard.hold && !known.paid));
  if (seen && !told) stopPolling ??= poll(look);
  else stopPolling = ended(stopPolling);
}

/** @param {(() => void) | undefined} stop */
function ended(stop) {
  stop?.();
  return undefined;
}

/**
 * @param {'sale' | 'hold'} name
 * @param {string} url
 * @param {string} event
 * @param {(data: unknown) => void} onData
 */
function stream(name, url, event, onData) {
  const is = (/** @type {boolean} */ good) => () => {
    const breaks = heard[name] && !good;
    heard[name] = good;
    keepUpToDate();
    if (breaks)
      void look(); // whether it is the stream or the connection
    else if (good) tellConnection(true);
  };
  const close = listen(url, event, { onData, onOpen: is(true), onBreak: is(false) });
  return () => {
    heard[name] = false;
    close();
  };
}

let connected = true;
/** @param {boolean} now */
function tellConnection(now) {
  if (now === connected) return;
  connected = now;
  connection.classList.toggle('good', now);
  connection.textContent = now
    ? 'Connected again.'
    : 'No connection to the shop. What you see may be old; we go on trying.';
  if (now) setTimeout(() => connected && (connection.textContent = ''), GOOD_NEWS_MS);
}

let drawn = '';
/** Draws the screen if it is another one. */
function draw() {
  const screen = screenOf(known, clock.now());
  drawSale();
  drawTimer(screen);
  stage.setAttribute('aria-busy', String(pressing !== null));
  for (const button of actions.children) button.setAttribute('aria-disabled', String(pressing !== null));
  const now = JSON.stringify({ ...screen, until: undefined });
  if (now === drawn) return;
  const before = drawn === '' ? undefined : /** @type {import('./screens.js').Screen} */ (JSON.parse(drawn));
  drawn = now;
  document.body.dataset.screen = screen.name;
  title.textContent = screen.title;
  text.textContent = screen.text;
  if (JSON.stringify(before?.actions) !== JSON.stringify(screen.actions)) drawActions(screen.actions);
  if (before && (before.title !== screen.title || before.text !== screen.text)) say(`${screen.title}. ${screen.text}`);
  document.title = `${screen.title} · ${known.sale?.name ?? 'Flash sale'}`;
}

/** @param {import('./screens.js').Action[]} all */
function drawActions(all) {
  const hadFocus = actions.contains(document.activeElement);
  const buttons = all.map(({ does, label, quiet }) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = label;
    button.className = quiet ? 'quiet' : '';
    button.setAttribute('aria-disabled', String(pressing !== null));
    button.addEventListener('click', () => {
      if (does !== 'stop') return void press(does);
      known.refusal = null;
      draw();
    });
    return button;
  });
  actions.replaceChildren(...buttons);
  // Whoever pressed goes on from what came of it. Not from a button: a second press must not mean something else.
  if (hadFocus) title.focus({ preventScroll: true });
}

function drawSale() {
  const { sale } = known;
  if (!sale) return;
  const { total, unitsLeft } = sale;
  put(price, money(sale.price));
  put(left, unitsLeft === undefined ? '' : `${unitsLeft} of ${total} left`);
  bar.hidden = unitsLeft === undefined;
  bar.max = total;
  bar.value = unitsLeft ?? 0;
}

let lastCall = false;
/** @param {import('./screens.js').Screen} screen */
function drawTimer({ name, until }) {
  const ms = until === undefined ? undefined : until - clock.now();
  put(timer, ms === undefined ? '' : countdown(ms));
  stock.hidden = ms !== undefined;
  const isLastCall = name === 'held' && ms !== undefined && ms < LAST_CALL_MS;
  if (isLastCall && !lastCall) say(`${countdown(ms)} left to pay.`);
  lastCall = isLastCall;
}

/** Writing the same again would be news to whoever reads along. @param {HTMLElement} where @param {string} words */
function put(where, words) {
  if (where.textContent !== words) where.textContent = words;
}

/** For whoever does not see it. @param {string} words */
function say(words) {
  news.textContent = words;
}

function tick() {
  const { refusal } = known;
  if (refusal?.again && clock.now() >= refusal.until && !pressing && navigator.onLine) void press(refusal.press);
  draw();
}

accept(JSON.parse(firstView));
setInterval(tick, TICK_MS);
tabs.addEventListener('message', () => void look());
document.addEventListener('visibilitychange', () => {
  keepUpToDate();
  if (document.visibilityState === 'visible') void look();
});
addEventListener('offline', () => tellConnection(false));
addEventListener('online', () => setTimeout(look, about(250)));
