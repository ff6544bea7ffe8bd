import { describe, expect, test } from 'vitest';
import type { FirstResult } from '../../src/shared/dedup/outcomes.ts';
import { fingerprintOf, type OutgoingMessage } from '../../src/shared/message.ts';
import { hash } from '../../src/shared/names.ts';
import { ack, nack } from '../../src/shared/verdict.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { context, counting, dedupWorkers } from '../support/dedup-workers.ts';
import { gate } from '../support/manual-system.ts';

const keyed = (given: Parameters<typeof testMessage>[0] = {}) =>
  testMessage({ ...given, attributes: { 'ptk-key': 'k', ...given.attributes } });

describe('a duplicate', () => {
  test.each([
    ['redelivery', keyed()],
    ['publisher_retry', keyed({ messageId: '2' })],
    ['hop', keyed({ messageId: '3', attributes: { 'ptk-origin-id': '1' } })],
  ])('is counted as %s', async (kind, copy) => {
    const { worker, meter } = dedupWorkers();
    const deliver = worker()(counting());
    await deliver(keyed(), context());
    expect(await deliver(copy, context())).toEqual(ack('duplicate'));
    expect([...meter.counts].filter(([name]) => name.startsWith('ptk.dedup.duplicates'))).toEqual([[`ptk.dedup.duplicates ${kind}`, 1]]);
  });

  test('is counted where it joins the first run too', async () => {
    const { worker, meter } = dedupWorkers();
    const deliver = worker()(counting());
    await Promise.all([deliver(keyed(), context()), deliver(keyed({ messageId: '2' }), context())]);
    expect(meter.counts.get('ptk.dedup.duplicates publisher_retry')).toBe(1);
  });
});

describe('the result of the first run', () => {
  const replayed = (maxResultBytes = 1_000) => {
    const workers = dedupWorkers();
    const seen: FirstResult[] = [];
    const deliver = (answer: unknown) =>
      workers.worker({ replay: async (_, first) => void seen.push(first), options: { maxResultBytes } })(counting(answer))(
        keyed(),
        context(),
      );
    return { ...workers, seen, deliver };
  };

  test.each([[{ id: 7, lines: ['a'] }], [null], [undefined], [0], [''], [false], [[]]])('%o is replayed to a duplicate', async (value) => {
    const { deliver, seen } = replayed();
    await deliver(value);
    expect(await deliver('another run')).toEqual(ack('duplicate'));
    expect(seen).toEqual([{ isKept: true, value, firstSeenAtMs: expect.any(Number) }]);
  });

  const circle: { self?: object } = {};
  circle.self = circle;
  test.each([
    ['of 1.2 MB', 'x'.repeat(1_200_000), 'size'],
    ['that is a circle', circle, 'form'],
    ['that is a BigInt', 7n, 'form'],
    ['that is a function', () => 7, 'form'],
  ])('%s is dropped with a warning, and the message is done', async (_, value, reason) => {
    const { deliver, seen, meter, logged } = replayed(900_000);
    expect(await deliver(value)).toEqual(ack('processed'));
    expect(await deliver('another run')).toEqual(ack('duplicate'));
    expect(seen).toMatchObject([{ isKept: false, value: undefined }]);
    expect(meter.counts.get(`ptk.dedup.results_dropped ${reason}`)).toBe(1);
    expect(logged).toMatchObject([{ level: 'warn', text: 'result not kept', fields: { key: 'k', reason, limitBytes: 900_000 } }]);
  });

  test('is kept up to the limit and not a byte over', async () => {
    for (const [bytes, isKept] of [
      [100, true],
      [101, false],
    ] as const) {
      const { deliver, seen } = replayed(100);
      await deliver('x'.repeat(bytes - 4));
      await deliver('');
      expect(seen).toMatchObject([{ isKept }]);
    }
  });

  test('that cannot be replayed now leaves the duplicate unacked', async () => {
    const { worker } = dedupWorkers();
    await worker({ replay: async () => {} })(counting('x'))(keyed(), context());
    const failing = worker({ replay: () => Promise.reject(new Error('the other topic is away')) })(counting());
    expect(await failing(keyed(), context())).toEqual(nack('failed'));
  });

  test('is not stored where nobody replays it', async () => {
    const { worker, record } = dedupWorkers();
    await worker()(counting('secret'))(keyed(), context());
    expect(await record('k')).toMatchObject({ state: 'done', result: null });
  });

  test('is replayed to a copy in the same process too, and what the handler says by a verdict is no result', async () => {
    const { worker } = dedupWorkers();
    const seen: FirstResult[] = [];
    const hold = gate();
    const deliver = worker({ replay: async (_, first) => void seen.push(first) })(() => hold.opened.then(() => ack('skipped')));
    const both = [deliver(keyed(), context()), deliver(keyed(), context())];
    hold.open();
    expect(await Promise.all(both)).toEqual([ack('skipped'), ack('duplicate')]);
    expect(seen).toMatchObject([{ isKept: false }]);
  });
});

describe('other content under a finished key', () => {
  const first = keyed({ data: 'pay 10' });
  const second = keyed({ messageId: '2', data: 'pay 99' });

  test('is a dead letter with both fingerprints, the first sight, and no payload', async () => {
    const { system, worker, meter } = dedupWorkers();
    await worker()(counting())(first, context());
    const verdict = await worker()(counting())(second, context());
    expect(verdict).toMatchObject({ kind: 'deadLetter', reason: 'conflict', key: 'k' });
    expect(JSON.parse(verdict.kind === 'deadLetter' ? verdict.detail : '')).toEqual({
      consumer: 'c',
      keyHash: hash('k'),
      fingerprint: fingerprintOf(second),
      stored: fingerprintOf(first),
      firstSeenAt: new Date(system.clock.nowMs()).toISOString(),
    });
    expect(meter.counts.get('ptk.dedup.conflicts')).toBe(1);
  });

  test('leaves the record as it was', async () => {
    const { worker, record } = dedupWorkers();
    await worker()(counting())(first, context());
    const before = await record('k');
    await worker()(counting())(second, context());
    expect(await record('k')).toEqual(before);
  });
});

describe('a number whose message ends here goes on as a tombstone', () => {
  const numbered = (sequence: string, given: Parameters<typeof testMessage>[0] = {}) =>
    keyed({ ...given, attributes: { 'ptk-stream': 's', 'ptk-seq': sequence, 'ptk-epoch': '1', colour: 'red', ...given.attributes } });
  const passing = () => {
    const workers = dedupWorkers();
    const passed: OutgoingMessage[] = [];
    const deliver = (message: ReturnType<typeof keyed>, answer?: unknown) =>
      workers.worker({ tombstones: async (tombstone) => void passed.push(tombstone) })(counting(answer))(message, context());
    return { passed, deliver };
  };

  test('a duplicate with another number, without its body and the user’s attributes', async () => {
    const { passed, deliver } = passing();
    await deliver(numbered('1', { data: 'x' }));
    expect(await deliver(numbered('2', { data: 'x', messageId: '2' }))).toEqual(ack('duplicate'));
    expect(passed).toEqual([
      {
        data: new Uint8Array(),
        attributes: expect.objectContaining({
          'ptk-tombstone': 'duplicate',
          'ptk-stream': 's',
          'ptk-seq': '2',
          'ptk-epoch': '1',
          'ptk-key': 'k',
        }),
      },
    ]);
    expect(Object.keys(passed[0]?.attributes ?? {}).filter((name) => !name.startsWith('ptk-'))).toEqual([]);
  });

  test('a conflict, and none for a duplicate with the same number', async () => {
    const { passed, deliver } = passing();
    await deliver(numbered('1'));
    await deliver(numbered('1'));
    expect(passed).toEqual([]);
    await deliver(numbered('2', { data: 'other' }));
    expect(passed).toMatchObject([{ attributes: { 'ptk-tombstone': 'conflict', 'ptk-seq': '2' } }]);
  });
});
