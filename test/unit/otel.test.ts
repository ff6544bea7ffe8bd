import { metrics as openTelemetry } from '@opentelemetry/api';
import { describe, expect, test } from 'vitest';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { otelMeter } from '../../src/shared/adapters/otel.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup, type DedupParts } from '../../src/shared/dedup/dedup.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import { metrics } from '../../src/shared/metrics.ts';
import type { RecordStore } from '../../src/shared/ports.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { silentStore } from '../support/faulty-store.ts';
import { gate, manualSystem, settled } from '../support/manual-system.ts';
import { sdk } from '../support/otel-sdk.ts';

const context = () => ({ signal: new AbortController().signal });
const secret = 'secret-4711';
const keyed = (messageId: string, data = 'x', more: Record<string, string> = {}) =>
  testMessage({ messageId, data: `${data} ${secret}`, attributes: { 'ptk-key': secret, ...more } });

/** Workers of one consumer over one store, each with its own memory of what is running. */
function setUp() {
  const { counts, meter, reader } = sdk();
  const system = manualSystem();
  const records = memoryRecordStore<DedupRecord>(system.clock);
  const given = otelMeter(meter);
  const worker = (more: Partial<DedupParts> = {}) =>
    createDedup({
      consumer: 'c',
      store: records,
      system,
      log: silentLog,
      meter: given,
      ...more,
      options: { leaseMs: 3_000, ttlSeconds: 60, storeTimeoutMs: 1_000, ...more.options },
    });
  const done = async () => 'done';
  return { counts, reader, system, records, worker, done };
}

const withoutStore = (counts: Record<string, number>) =>
  Object.fromEntries(Object.entries(counts).filter(([name]) => !name.startsWith('ptk.store')));

describe('the numbers of dedup in OpenTelemetry', () => {
  test('are exact: runs, and duplicates by what made them', async () => {
    const { counts, worker, done } = setUp();
    const deliver = worker()(done);
    const messages = [keyed('m1'), keyed('m1'), keyed('m1'), keyed('m2'), keyed('m3', 'x', { 'ptk-origin-id': 'm1' }), keyed('m4', 'y')];
    for (const message of messages) await deliver(message, context());
    await worker()(() => Promise.reject(new Error(secret)))(testMessage({ messageId: 'm5' }), context());
    const { 'ptk.store.duration{put ok}': ok, 'ptk.store.duration{put conflict}': refused, ...counted } = await counts();
    expect(counted).toEqual({
      'ptk.dedup.handled{processed}': 1,
      'ptk.dedup.handled{failed}': 1,
      'ptk.dedup.duplicates{redelivery}': 2,
      'ptk.dedup.duplicates{publisher_retry}': 1,
      'ptk.dedup.duplicates{hop}': 1,
      'ptk.dedup.conflicts{}': 1,
    });
    expect([ok, refused]).toEqual([4, 5]);
  });

  test('are exact: runs in progress, and one that is outlived', async () => {
    const { counts, system, records, worker, done } = setUp();
    const hold = gate();
    let isHeard = true;
    const silent = silentStore<DedupRecord>();
    /** Of a worker that the store stops hearing once it has claimed. */
    const mute: RecordStore<DedupRecord> = {
      get: (key) => (isHeard ? records : silent).get(key),
      put: (...args) => (isHeard ? records : silent).put(...args),
    };
    const outlived = worker({ store: mute })(() => hold.opened)(keyed('m1'), context());
    await system.time.advance(1);
    isHeard = false;
    await worker()(done)(keyed('m1'), context());
    await system.time.advance(3_000);
    await worker()(done)(keyed('m1'), context());
    isHeard = true;
    hold.open();
    await settled(system, outlived);
    expect(withoutStore(await counts())).toEqual({
      'ptk.dedup.in_progress{}': 1,
      'ptk.dedup.handled{processed}': 2,
      'ptk.dedup.lease_lost{}': 1,
      'ptk.dedup.duplicates{zombie}': 1,
    });
  });

  test('are exact: a record that the store lost, and results that were not kept', async () => {
    const { counts, system, records, worker } = setUp();
    let store = records;
    const lossy: RecordStore<DedupRecord> = { get: (key) => store.get(key), put: (...args) => store.put(...args) };
    await worker({ store: lossy })(async () => {
      store = memoryRecordStore<DedupRecord>(system.clock);
    })(keyed('m1'), context());
    const keeping = worker({ replay: async () => {}, options: { maxResultBytes: 10 } });
    await keeping(async () => secret)(testMessage({ messageId: 'm2' }), context());
    await keeping(async () => 1n)(testMessage({ messageId: 'm3' }), context());
    expect(withoutStore(await counts())).toEqual({
      'ptk.dedup.handled{processed}': 3,
      'ptk.dedup.record_lost{}': 1,
      'ptk.dedup.results_dropped{size}': 1,
      'ptk.dedup.results_dropped{form}': 1,
    });
  });

  test('are exact: runs without dedup, and what shadow mode would not have run', async () => {
    const { counts, system, worker, done } = setUp();
    const down = () => Promise.reject(new ToolkitError('STORE_UNAVAILABLE', 'down'));
    await settled(system, worker({ store: { get: down, put: down }, onOutage: 'open' })(done)(keyed('m1'), context()));
    const keyOf = () => {
      throw new ToolkitError('KEY_MISSING', 'no key');
    };
    await worker({ keyOf, onMissingKey: 'run' })(done)(keyed('m2'), context());
    const shadow = worker({ shadow: true })(done);
    for (const message of [keyed('m3'), keyed('m3'), keyed('m4', 'y')]) await shadow(message, context());
    expect(withoutStore(await counts())).toEqual({
      'ptk.dedup.unguarded{outage}': 1,
      'ptk.dedup.unguarded{key missing}': 1,
      'ptk.dedup.handled{processed}': 4,
      'ptk.dedup.shadowed{duplicate}': 1,
      'ptk.dedup.shadowed{conflict}': 1,
    });
  });

  test.each([
    ['done', 'done', 'ptk.dedup.duplicates{redelivery}'],
    ['runAgain', 'run_again', 'ptk.dedup.handled{processed}'],
    ['escalate', 'escalated', undefined],
  ] as const)('are exact: a dead run with effects outside, of which one says %s', async (answer, decision, then) => {
    const { counts, system, records, worker, done } = setUp();
    const silent = silentStore<DedupRecord>();
    const dying = {
      get: silent.get,
      put: (...args: Parameters<typeof records.put>) => (args[2] === 'absent' ? records : silent).put(...args),
    };
    const parts = { effects: 'external', reconcile: async () => answer } as const;
    void worker({ ...parts, store: dying })(() => new Promise(() => {}))(keyed('m1'), context());
    await system.time.advance(3_001);
    await worker(parts)(done)(keyed('m1'), context());
    expect(withoutStore(await counts())).toEqual({ [`ptk.dedup.abandoned{${decision}}`]: 1, ...(then && { [then]: 1 }) });
  });

  test('have the consumer’s name, and hold neither key nor payload', async () => {
    const { reader, worker, done } = setUp();
    for (const message of [keyed('m1'), keyed('m1'), keyed('m2', 'y')]) await worker()(done)(message, context());
    const { resourceMetrics } = await reader.collect();
    expect(JSON.stringify(resourceMetrics)).not.toContain(secret);
    const dedup = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics).filter(({ descriptor }) => /dedup/.test(descriptor.name));
    for (const { dataPoints } of dedup) for (const { attributes } of dataPoints) expect(attributes).toMatchObject({ consumer: 'c' });
  });
});

describe('otelMeter', () => {
  test('makes each number once, of the kind and with the words of the table', async () => {
    const { meter, reader, counts } = sdk();
    const { record } = otelMeter(meter);
    const names = Object.keys(metrics) as (keyof typeof metrics)[];
    for (const name of [...names, ...names]) record(name, { kind: 'a' }, metrics[name].kind === 'histogram' ? 2.5 : undefined);
    record('ptk.dedup.handled', { kind: 'a' }, 5);
    expect(await counts()).toEqual({ ...Object.fromEntries(names.map((name) => [`${name}{a}`, 2])), 'ptk.dedup.handled{a}': 7 });
    const { resourceMetrics } = await reader.collect();
    const described = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics.map(({ descriptor }) => descriptor));
    expect(described.map(({ name, description }) => [name, description])).toEqual(names.map((name) => [name, metrics[name].about]));
    expect(described.find(({ name }) => name === 'ptk.store.duration')?.unit).toBe('ms');
  });

  test('without an SDK gives nothing out and breaks nothing, and finds one that starts before the first number', async () => {
    const early = otelMeter();
    const later = otelMeter();
    expect(() => early.record('ptk.dedup.handled', {})).not.toThrow();
    const { provider, counts } = sdk();
    openTelemetry.setGlobalMeterProvider(provider);
    try {
      later.record('ptk.dedup.handled', {});
      expect(await counts()).toEqual({ 'ptk.dedup.handled{}': 1 });
    } finally {
      openTelemetry.disable();
    }
  });
});
