/**
 * Spans of OpenTelemetry, for any folder. Until src/tracing.ts gives a tracer, which it does only where an exporter is
 * configured, each of these is a comparison and a call. How context travels: W3C Trace Context.
 */
import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type Span,
  type SpanOptions,
  type Tracer,
} from '@opentelemetry/api';

export { SpanKind, type Span };

let tracer: Tracer | undefined;

/** From here on spans are made. `undefined` ends that. */
export function traceWith(given: Tracer | undefined): void {
  tracer = given;
}
export const isTracing = () => tracer !== undefined;

/** What of a trace goes with a request or a message. */
export const CONTEXT_FIELDS = ['traceparent', 'tracestate'] as const;
export type Carrier = Partial<Record<string, string | string[]>>;

/** The context that came with a request or a message; the root's when it brought none that is well-formed. */
export function contextFrom(carrier: Carrier): Context {
  return tracer === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, carrier);
}

/** The present context, to go with a message; undefined when there is none. */
export function presentContext(): Carrier | undefined {
  if (tracer === undefined || trace.getActiveSpan() === undefined) return undefined;
  const carrier: Record<string, string> = {};
  propagation.inject(context.active(), carrier);
  return carrier;
}

export const contextOf = (span: Span): Context => trace.setSpan(ROOT_CONTEXT, span);

export type InSpan<T> = SpanOptions & {
  /** Whose child it is; the present span's if left out. */
  parent?: Context;
  /** For what mostly finds nothing to do: when it says no, the span is not ended, and so never exported. */
  worthIt?: (result: T) => boolean;
};

/**
 * Does `work` in a span of this name, which is marked failed when `work` throws.
 * @param work gets the span, or undefined when none is made
 */
export function inSpan<T>(
  name: string,
  { parent, worthIt, ...options }: InSpan<T>,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> {
  if (tracer === undefined) return work(undefined);
  const under = parent ?? context.active();
  const span = tracer.startSpan(name, options, under);
  return context.with(trace.setSpan(under, span), async () => {
    try {
      const result = await work(span);
      if (worthIt?.(result) ?? true) span.end();
      return result;
    } catch (error) {
      // Which error, and no more: its words may have a secret in them, and the log has them, without it.
      span.setAttribute('error.type', error instanceof Error ? error.constructor.name : typeof error);
      span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
      throw error;
    }
  });
}

/** Which trace a line of the log belongs to. */
export function traceFields(): object {
  const span = tracer === undefined ? undefined : trace.getActiveSpan();
  if (span === undefined) return {};
  const { traceId, spanId } = span.spanContext();
  return { traceId, spanId };
}
