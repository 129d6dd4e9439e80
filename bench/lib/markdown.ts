/** Tables in Markdown. */

/** @param rows the first one is the head; columns but the first are aligned to the right */
export function table(...rows: string[][]): string[] {
  const [head = [], ...body] = rows;
  const rule = head.map((_, n) => (n === 0 ? '---' : '---:'));
  return ['', ...[head, rule, ...body].map((cells) => `| ${cells.join(' | ')} |`), ''];
}

/** Code in a cell of a table, whatever is in it. */
export function code(text: string): string {
  const fence = text.includes('`') ? '``' : '`';
  return `${fence}${text.replaceAll('|', '\\|')}${fence}`;
}
