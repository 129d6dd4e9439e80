/** The shop's two pages: plain HTML with a few places to fill in. Nothing in them runs, and nothing is styled, inline. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { View } from './view.ts';

export const ASSETS = join(import.meta.dirname, 'assets');
const read = (name: string) => readFileSync(join(ASSETS, name), 'utf8');
const SHOP = read('shop.html');
export const NO_SUCH_SALE = read('no-such-sale.html');

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text: string) => text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');

/** The page with what is known at this moment: its script need not ask first. */
export function shopPage(saleId: string, view: View): string {
  const places: Record<string, string> = { name: view.sale?.name ?? 'Flash sale', saleId, view: JSON.stringify(view) };
  return SHOP.replaceAll(/\{\{(\w+)\}\}/g, (_, place: string) => escape(places[place] ?? ''));
}
