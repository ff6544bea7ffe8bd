import type { Histogram } from '@opentelemetry/sdk-metrics';
import { describe, expect, test } from 'vitest';
import { otelMeter } from '../../src/shared/adapters/otel.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';
import { sdk } from '../support/otel-sdk.ts';

const context = { signal: new AbortController().signal };

/** The delay layer with numbers that go to the SDK, and one message of 5 s, with an id or without. */
async function setUp(id?: string) {
  const { meter, reader } = sdk();
  const told: number[] = [];
  const delaying = setUpDelay({}, { meter: otelMeter(meter), onPublished: (latenessMs) => void told.push(latenessMs) });
  const { system } = delaying;
  const dueAt = new Date(system.time.nowMs() + 5_000).toISOString();
  const attributes = { 'ptk-deliver-at': dueAt, ...(id !== undefined && { 'ptk-delay-id': id }) };
  await delaying.delay(testMessage({ attributes, publishTimeMs: system.time.nowMs() }), context);
  const task = delaying.task(0);
  /** Count, sum, and attributes of `ptk.delay.lateness`. */
  const recorded = async () => {
    const { resourceMetrics } = await reader.collect();
    const all = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
    const points = all.flatMap(({ descriptor, dataPoints }) => (descriptor.name === 'ptk.delay.lateness' ? [...dataPoints] : []));
    return points.map(({ value, attributes }) => [(value as Histogram).count, (value as Histogram).sum, attributes]);
  };
  return { ...delaying, told, task, recorded };
}

describe.each([['without an id', undefined] as const, ['with an id', 'order-17'] as const])('a message %s', (_, id) => {
  test.each([
    ['on time', 5_000, 0],
    ['a millisecond late', 5_001, 1],
    ['a minute late', 65_000, 60_000],
    ['early by the clock of the release', 4_990, 0],
  ])('that is released %s is recorded once in OpenTelemetry and told once', async (_title, afterMs, latenessMs) => {
    const { system, task, release, dispatched, told, recorded } = await setUp(id);
    expect(await recorded()).toEqual([]);
    await system.time.advance(afterMs);
    if (task) await dispatched(task);
    await release(task, 2);
    expect(told).toEqual([latenessMs]);
    expect(await recorded()).toEqual([[1, latenessMs, {}]]);
  });

  test('that could not be published is recorded when it was', async () => {
    const { system, task, failure, release, told, recorded } = await setUp(id);
    await system.time.advance(5_000);
    failure.publish = new ToolkitError('SERVICE_UNAVAILABLE', 'later');
    await expect(release(task)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    expect([told, await recorded()]).toEqual([[], []]);
    failure.publish = undefined;
    await system.time.advance(30_000);
    await release(task, 2);
    expect([told, await recorded()]).toEqual([[30_000], [[1, 30_000, {}]]]);
  });
});
