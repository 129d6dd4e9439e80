/** Puts measured figures into a document, between marks: `<!-- bench NAME -->…<!-- /bench -->`. */

const MARK = /<!-- bench ([\w-]+) -->[\s\S]*?<!-- \/bench -->/g;

/** @throws {Error} naming a mark for which nothing was measured: a document must not keep a figure of an older run */
export function insert(document: string, figures: Record<string, string>): string {
  return document.replaceAll(MARK, (_, name: string) => {
    const figure = figures[name];
    if (figure === undefined) throw new Error(`a document quotes ${name}, which the bench did not measure`);
    return `<!-- bench ${name} -->${figure}<!-- /bench -->`;
  });
}

/** The names that a document quotes. */
export function quoted(document: string): string[] {
  return [...document.matchAll(MARK)].map(([, name = '']) => name);
}
