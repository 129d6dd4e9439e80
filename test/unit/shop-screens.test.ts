/** What the shop's page shows for each state, in a buyer's words: no yes that is none, and a way on wherever there is one. */
import { expect, test } from 'vitest';

type Screen = { name: string; title: string; text: string; until?: number; actions: { does: string; label: string }[] };
type Known = Record<'sale' | 'reservation' | 'refusal', object | null> & { lost: boolean; paid: boolean };
const assets = '../../src/http/shop/assets';
const { screenOf } = (await import(`${assets}/screens.js`)) as { screenOf: (known: Known, now: number) => Screen };
const { countdown, ServerClock } = (await import(`${assets}/clock.js`)) as {
  countdown: (ms: number) => string;
  ServerClock: new () => { told: (time: string | null) => void; now: () => number };
};
const { money } = (await import(`${assets}/words.js`)) as {
  money: (price: { amount: number; currency: string }) => string;
};

const NOW = Date.parse('2026-11-30T12:00:00Z');
const at = (seconds: number) => new Date(NOW + seconds * 1000).toISOString();
const price = { amount: 49_900, currency: 'EUR' };
const sale = { state: 'open', name: 'A phone', startsAt: at(-60), endsAt: at(3600), total: 10, unitsLeft: 5, price };
const held = { reservationId: '541460b2-8259-4f70-9018-0676e172f86a', qty: 1, ...price, expiresAt: at(598) };
const nothing: Known = { sale, reservation: null, refusal: null, lost: false, paid: false };
const reservation = (status: string, more: object = {}) => ({ reservation: { ...held, status, ...more } });
const refusal = (code: string, more: object = {}) => ({
  refusal: { code, press: 'buy', until: NOW + 5000, saidAt: NOW, again: false, ...more },
});

test.each<[name: string, known: Partial<Known>, does: string[], words: RegExp]>([
  ['unknown', { sale: null }, [], /busy/],
  ['scheduled', { sale: { ...sale, state: 'scheduled', startsAt: at(90) } }, [], /begins at/],
  ['open', { sale: { ...sale, state: 'scheduled', startsAt: at(0) } }, ['buy'], /Press Buy/],
  ['open', {}, ['buy'], /On sale now/],
  ['open', { sale: { ...sale, unitsLeft: undefined } }, ['buy'], /On sale now/],
  ['none_now', { sale: { ...sale, unitsLeft: 0 } }, ['buy'], /comes back/],
  ['paused', { sale: { ...sale, state: 'paused' } }, [], /paused/],
  ['ended', { sale: { ...sale, state: 'ended' } }, [], /is over/],
  ['ended', { sale: { ...sale, state: 'closed' } }, [], /is over/],
  ['ended', { sale: { ...sale, endsAt: at(0) } }, [], /is over/],
  ['held', reservation('QUEUED'), ['pay', 'cancel'], /You hold one.*Pay before/],
  ['held', reservation('PENDING_PAYMENT', { qty: 2 }), ['pay', 'cancel'], /You hold 2/],
  ['held', { ...reservation('QUEUED'), sale: { ...sale, state: 'paused' } }, ['pay', 'cancel'], /You hold one/],
  ['held', { ...reservation('QUEUED'), sale: { ...sale, state: 'ended' } }, ['pay', 'cancel'], /You hold one/],
  [
    'held',
    { ...reservation('QUEUED'), ...refusal('payment_provider_refused', { press: 'pay' }) },
    ['pay', 'cancel'],
    /not accepted/,
  ],
  ['checking', reservation('PENDING_PAYMENT', { expiresAt: at(0) }), [], /in a moment/],
  ['paying', { ...reservation('PENDING_PAYMENT'), paid: true }, [], /on its way/],
  ['paid', reservation('PAID'), [], /It is yours.*€499\.00/],
  ['paid', { ...reservation('PAID'), sale: { ...sale, state: 'closed' } }, [], /It is yours/],
  ['expired', reservation('EXPIRED'), ['buy'], /ran out/],
  ['expired', reservation('EXPIRED', { refund: 'PENDING' }), ['buy'], /on its way back/],
  ['expired', { ...reservation('EXPIRED'), sale: { ...sale, state: 'ended' } }, [], /ran out.*is over/],
  ['cancelled', reservation('CANCELLED'), ['buy'], /nothing to pay/],
  ['rejected', reservation('REJECTED', { refund: 'SUCCEEDED' }), ['buy'], /sorry.*has been sent back/],
  ['refunded', reservation('REFUNDED', { refund: 'FAILED' }), ['buy'], /undone.*the shop sees to it/],
  ['lost', { lost: true }, ['buy'], /cannot find/],
  ['sold_out', refusal('sold_out', { mayReturn: false }), [], /none comes back/],
  ['sold_out_may_return', refusal('sold_out', { mayReturn: true }), ['buy'], /may come back at \d\d:\d\d/],
  ['try_now', refusal('sold_out', { mayReturn: true, until: NOW }), ['buy'], /back now/],
  ['sold_out', { ...reservation('EXPIRED'), ...refusal('sold_out', { mayReturn: false }) }, [], /Sold out/],
  ['busy', refusal('overloaded', { again: true }), ['stop'], /try again by ourselves/],
  [
    'busy',
    { ...reservation('QUEUED'), ...refusal('no_answer', { again: true, press: 'pay' }) },
    ['stop'],
    /by ourselves/,
  ],
  ['too_often', refusal('rate_limited', { again: true }), ['stop'], /very often/],
  ['no_cookies', refusal('no_cookies'), [], /cookie/],
])('%s: %j', (name, known, does, words) => {
  const screen = screenOf({ ...nothing, ...known }, NOW);
  expect(screen.name).toBe(name);
  expect(screen.actions.map((action) => action.does)).toEqual(does);
  expect(`${screen.title} ${screen.text}`).toMatch(words);
  if (name !== 'paid') expect(`${screen.title} ${screen.text}`).not.toMatch(/(is|are) yours/i);
});

test('a countdown says no more than there is', () => {
  const shown = [598_999, 59_000, 999, -5, 3_723_000, 90_061_000, 2 * 86_400_000].map(countdown);
  expect(shown).toEqual(['9:58', '0:59', '0:00', '0:00', '1:02:03', '1 day 01:01:01', '2 days 00:00:00']);
});

test('the clock is the server’s: a time that was told late does not set it back', () => {
  const clock = new ServerClock();
  const noon = new Date(NOW).toISOString();
  clock.told(noon);
  expect(Math.abs(clock.now() - NOW)).toBeLessThan(1000);
  clock.told(new Date(NOW - 60_000).toISOString());
  clock.told(null);
  expect(clock.now()).toBeGreaterThanOrEqual(NOW);
  clock.told(new Date(NOW + 60_000).toISOString());
  expect(clock.now()).toBeGreaterThanOrEqual(NOW + 60_000);
});

test('money by its currency’s digits', () => {
  expect([money(price), money({ amount: 500, currency: 'JPY' }), money({ amount: 1234, currency: 'KWD' })]).toEqual([
    '€499.00',
    '¥500',
    expect.stringMatching(/KWD.1\.234/),
  ]);
});
