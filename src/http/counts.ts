/**
 * What the API has answered, by problem code, `ok` or `dup`; `latched` are those of sold_out that this process knew by
 * itself. Plain numbers, read when somebody asks for metrics: counting must cost the refusal path nothing.
 */
export const answers: Record<string, number> = {};
export const latched = { count: 0 };

export function count(code: string): void {
  answers[code] = (answers[code] ?? 0) + 1;
}
