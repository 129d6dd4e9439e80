/**
 * OpenTelemetry, where an exporter is configured by its standard variables; without them not even its code is loaded.
 * OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG and the rest of them are read by the library itself:
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { diag, DiagLogLevel, trace } from '@opentelemetry/api';
import type { Log } from './operations/stores.ts';
import { traceWith } from './span.ts';

export type Tracing = { stop: () => Promise<void> };

/** What is still to be sent when the process ends is given up after this. */
const FLUSH_MS = 2000;
/** A collector that is away is told of this often at most. */
const COMPLAIN_EVERY_MS = 60_000;

/** Whether the environment asks for traces. @throws {Error} when it asks for what is not built in */
export function wantsTraces(env: NodeJS.ProcessEnv): boolean {
  const { OTEL_SDK_DISABLED: off, OTEL_TRACES_EXPORTER: exporter = 'otlp' } = env;
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? env.OTEL_EXPORTER_OTLP_ENDPOINT ?? '';
  if (endpoint === '' || off?.toLowerCase() === 'true' || exporter === 'none') return false;
  if (exporter !== 'otlp') throw new Error(`OTEL_TRACES_EXPORTER=${exporter}: only otlp and none are built in`);
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? env.OTEL_EXPORTER_OTLP_PROTOCOL ?? 'http/protobuf';
  if (protocol !== 'http/protobuf') {
    throw new Error(
      `OTEL_EXPORTER_OTLP_PROTOCOL=${protocol}: only http/protobuf is built in (port 4318 of a collector)`,
    );
  }
  return true;
}

/** @param part the command, which tells this process from the others' */
export async function startTracing(env: NodeJS.ProcessEnv, part: string, log: Log): Promise<Tracing> {
  if (!wantsTraces(env)) return { stop: () => Promise.resolve() };
  const [{ NodeTracerProvider, BatchSpanProcessor }, { OTLPTraceExporter }, resources] = await Promise.all([
    import('@opentelemetry/sdk-trace-node'),
    import('@opentelemetry/exporter-trace-otlp-proto'),
    import('@opentelemetry/resources'),
  ]);
  diag.setLogger(complaints(log), DiagLogLevel.WARN);
  const { defaultResource, detectResources, envDetector, resourceFromAttributes } = resources;
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': `flashgate-${part}`, 'process.pid': process.pid }))
      .merge(detectResources({ detectors: [envDetector] })), // OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
  traceWith(trace.getTracer('flashgate'));
  log.info({ part }, 'traces are exported');
  return {
    stop: async () => {
      traceWith(undefined);
      const ended = provider.shutdown().catch((error: unknown) => {
        log.warn({ err: error }, 'the last traces could not be exported');
      });
      await Promise.race([ended, sleep(FLUSH_MS, undefined, { ref: false })]);
    },
  };
}

/** The library complains with every batch that it cannot send. */
function complaints(log: Log) {
  let saidAt = -Infinity;
  const complain = (message: string) => {
    if (performance.now() - saidAt < COMPLAIN_EVERY_MS) return;
    saidAt = performance.now();
    log.warn({ detail: message.slice(0, 500) }, 'OpenTelemetry: traces are lost or late');
  };
  const quiet = () => undefined;
  return { error: complain, warn: complain, info: quiet, debug: quiet, verbose: quiet };
}
