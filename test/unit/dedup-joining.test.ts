import { describe, expect, test } from 'vitest';
import type { FirstResult } from '../../src/shared/dedup/outcomes.ts';
import { ack, nack } from '../../src/shared/verdict.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { context, counting, dedupWorkers } from '../support/dedup-workers.ts';
import { gate } from '../support/manual-system.ts';

const keyed = (given: Parameters<typeof testMessage>[0] = {}) =>
  testMessage({ ...given, attributes: { 'ptk-key': 'k', ...given.attributes } });

describe('a copy that comes while this process handles the message', () => {
  test.each([
    ['fails', () => Promise.reject(new Error('declined')), nack('failed')],
    ['gives the message back', async () => nack('failed', 700), nack('failed', 700)],
  ])('is not acked where the run %s', async (_, handle, given) => {
    const { worker } = dedupWorkers();
    const deliver = worker()(handle);
    expect(await Promise.all([deliver(keyed(), context()), deliver(keyed(), context())])).toEqual([given, given]);
    const again = counting();
    expect(await worker()(again)(keyed(), context())).toEqual(ack('processed'));
    expect(again.runs).toBe(1);
  });

  test('gets the result that the run returned, from its record', async () => {
    const { worker } = dedupWorkers();
    const seen: FirstResult[] = [];
    const hold = gate();
    const deliver = worker({ replay: async (_, first) => void seen.push(first) })(() => hold.opened.then(() => ({ paid: 10 })));
    const both = [deliver(keyed(), context()), deliver(keyed(), context())];
    // The copy asks the store as soon as the run is over, so it may meet a claim that is not ended yet.
    hold.open();
    expect(await Promise.all(both)).toEqual([ack('processed'), ack('duplicate')]);
    expect(seen).toMatchObject([{ isKept: true, value: { paid: 10 } }]);
  });

  test.each([
    ['other content', keyed({ data: 'pay 99' })],
    ['another number', keyed({ attributes: { 'ptk-stream': 's', 'ptk-seq': '2', 'ptk-epoch': '1' } })],
  ])('is none with %s under the same key: the store judges it, as it would from another process', async (_, other) => {
    const { worker } = dedupWorkers();
    const hold = gate();
    const handler = counting();
    const deliver = worker()(async () => {
      await handler();
      await hold.opened;
    });
    const first = deliver(keyed(), context());
    expect(await deliver(other, context())).toEqual(nack('inProgress', 3_000));
    hold.open();
    expect([await first, handler.runs]).toEqual([ack('processed'), 1]);
  });
});
