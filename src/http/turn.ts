/**
 * Answers that are known at once are written together, at the end of the turn of the event loop in which their requests
 * arrived. One by one, each write wakes the reader on the other side, who is done before the next comes: measured, that
 * alone made an answer that needs nobody dearer than one that had to ask Redis in a batch (bench, part `refusal`).
 */
export function atEndOfTurn<T>(answer: (item: T) => void): (item: T) => void {
  let waiting: T[] = [];
  const flush = () => {
    const items = waiting;
    waiting = [];
    for (const item of items) answer(item);
  };
  return (item) => {
    if (waiting.push(item) === 1) setImmediate(flush);
  };
}
