import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { expect } from 'vitest';

/** Hands out what is counted when it is asked. */
class AskedReader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

/** OpenTelemetry's SDK, and what it was given. */
export function sdk() {
  const reader = new AskedReader();
  const provider = new MeterProvider({ readers: [reader] });
  /** `name{values of the attributes but for the consumer}` → sum, or number of values. */
  const counts = async (): Promise<Record<string, number>> => {
    const { resourceMetrics, errors } = await reader.collect();
    expect(errors).toEqual([]);
    const points = resourceMetrics.scopeMetrics.flatMap(({ metrics }) =>
      metrics.flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => {
          const { consumer: _, ...rest } = attributes;
          const count = typeof value === 'object' ? value.count : value;
          return [`${descriptor.name}{${Object.values(rest).join(' ')}}`, count] as const;
        }),
      ),
    );
    return Object.fromEntries(points);
  };
  return { provider, reader, counts, meter: provider.getMeter('pubsub-toolkit') };
}
