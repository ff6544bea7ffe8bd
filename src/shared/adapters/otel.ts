import { type Attributes, type Meter as OtelMeter, metrics as openTelemetry } from '@opentelemetry/api';
import { type MetricName, metrics } from '../metrics.ts';
import type { Meter } from '../ports.ts';

type Give = (attributes: Attributes, value: number | undefined) => void;

/**
 * Numbers for OpenTelemetry. Without an SDK they go nowhere.
 * @param meter by default that of the SDK which runs when a number is first given
 */
export function otelMeter(meter?: OtelMeter): Meter {
  const instruments = new Map<MetricName, Give>();
  const instrument = (name: MetricName): Give => {
    // Not before: the API hands out a meter that stays silent while no SDK runs.
    const from = meter ?? openTelemetry.getMeter('pubsub-toolkit');
    const { kind, about: description, ...options } = metrics[name];
    if (kind === 'counter') {
      const counter = from.createCounter(name, { description });
      return (attributes, value = 1) => counter.add(value, attributes);
    }
    const histogram = from.createHistogram(name, { description, ...options });
    return (attributes, value) => value !== undefined && histogram.record(value, attributes);
  };
  return {
    record(name, attributes, value) {
      let give = instruments.get(name);
      if (!give) {
        give = instrument(name);
        instruments.set(name, give);
      }
      give(attributes, value);
    },
  };
}
