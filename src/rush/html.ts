/** Markup made of templates, in which whatever is put in is text unless it was made here. */

export type Html = { readonly text: string };

/** Markup as it is. Never of what somebody else has named. */
export const raw = (text: string): Html => ({ text });

const escape = (text: string) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

type Piece = string | number | Html | Html[];
function asMarkup(piece: Piece): string {
  if (Array.isArray(piece)) return piece.map(({ text }) => text).join('');
  return typeof piece === 'object' ? piece.text : escape(String(piece));
}

export function markup(parts: TemplateStringsArray, ...pieces: Piece[]): Html {
  return { text: parts.map((part, n) => part + (n < pieces.length ? asMarkup(pieces[n] as Piece) : '')).join('') };
}
