/** Shows how far the rush is: a bar on a terminal, a plain line every two seconds elsewhere. */
import cliProgress from 'cli-progress';

const LINE_EVERY_MS = 2000;
const BAR_EVERY_MS = 100;

/** What is shown: how much of how much, and a few words. */
export type Glance = { done: number; total: number; words: string };

export type Progress = { stop(): void };

/**
 * Shows `look()` again and again until it is stopped, and then once more.
 * @param title the phase, one or two words
 * @param print takes the lines when there is no terminal
 */
export function showProgress(title: string, print: (line: string) => void, look: () => Glance): Progress {
  const isTerminal = process.stdout.isTTY;
  const bar = isTerminal
    ? new cliProgress.SingleBar(
        { format: `${title} {bar} {value}/{total} {words}`, hideCursor: true, barsize: 30 },
        cliProgress.Presets.shades_classic,
      )
    : undefined;
  let shown = '';
  const show = () => {
    const { done, total, words } = look();
    if (bar) {
      bar.setTotal(total);
      bar.update(done, { words });
      return;
    }
    const line = `${title}: ${done} of ${total}  ${words}`;
    if (line !== shown) print(line);
    shown = line;
  };
  const first = look();
  bar?.start(first.total, first.done, { words: first.words });
  const timer = setInterval(show, bar ? BAR_EVERY_MS : LINE_EVERY_MS);
  return {
    stop() {
      clearInterval(timer);
      show();
      bar?.stop();
    },
  };
}
