/** Tables in Markdown. */

/** @param rows the first one is the head; columns but the first are aligned to the right */
export function table(...rows: string[][]): string[] {
  const [head = [], ...body] = rows;
  const rule = head.map((_, n) => (n === 0 ? '---' : '---:'));
  return ['', ...[head, rule, ...body].map((cells) => `| ${cells.join(' | ')} |`), ''];
}
