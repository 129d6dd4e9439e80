/** The project's documents as tests read them: their code, their tables, their links, and the source that they speak of. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');
export const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** `language` and `lines` of a fenced block. */
export type Block = { language: string; lines: string[] };
export type Doc = { path: string; text: string; blocks: Block[]; /** Inline code. */ spans: string[] };

const FENCE = /^ *```(\w*)\n([\s\S]*?)^ *```$/gm;

export function readDoc(path: string): Doc {
  const text = read(path);
  const blocks = [...text.matchAll(FENCE)].map(([, language = '', body = '']) => ({
    language,
    // A command that goes on in the next line is one command.
    lines: body.replaceAll(/\\\n\s*/g, ' ').split('\n'),
  }));
  // Inline code may be wrapped between two lines.
  const spans = [...text.replaceAll(FENCE, '').matchAll(/`([^`]+)`/g)].map(([, span = '']) =>
    span.replaceAll(/\s+/g, ' '),
  );
  return { path, text, blocks, spans };
}

export const docs = [
  'README.md',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'bench/README.md',
  ...readdirSync(join(ROOT, 'docs')).map((file) => join('docs', file)),
].map(readDoc);

export function docAt(path: string): Doc {
  const doc = docs.find((each) => each.path === path);
  if (!doc) throw new Error(`${path} is not among the documents`);
  return doc;
}

/** The cells of the table whose header has these words, without the header. @throws {Error} when there is no such table */
export function tableOf({ path, text }: Doc, ...header: string[]): string[][] {
  const lines = text.split('\n');
  const cells = (line: string) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
  const start = lines.findIndex((line) => line.startsWith('|') && header.every((word) => cells(line).includes(word)));
  if (start < 0) throw new Error(`${path} has no table with the columns ${header.join(', ')}`);
  const end = lines.findIndex((line, n) => n > start && !line.startsWith('|'));
  return lines.slice(start + 2, end < 0 ? undefined : end).map(cells);
}

/** The pieces of inline code in a text. */
export const codeIn = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);

/** Folders of the product and its set-up. */
const PRODUCT = ['src', 'lua', 'migrations', 'scripts', 'test/support'];

/** All text of the product, and of `more` folders, in which a name that a document uses must occur. */
export function sourceText(...more: string[]): string {
  const folders = [...PRODUCT, ...more];
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  );
  return files
    .filter((file) => /\.(ts|js|lua|sql)$/.test(file))
    .map(read)
    .join('\n');
}
