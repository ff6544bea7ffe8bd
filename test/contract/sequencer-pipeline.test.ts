import { describe, expect, test, vi } from 'vitest';
import { system } from '../../src/shared/adapters/system.ts';
import type { OutgoingMessage } from '../../src/shared/message.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { type Gate, gate, manualSystem } from '../support/manual-system.ts';
import { draft, sequencing, upTo } from '../support/sequencing.ts';

const databases = await firestoreDatabases();
const manual = manualSystem();
const timed = await firestoreDatabases(manual.time);

/** A publisher whose requests wait until they are let go, the oldest first. */
function heldBack(publisher: ReturnType<typeof sequencing>['publisher']) {
  const held: Gate[] = [];
  return {
    held,
    async publish(topic: string, messages: readonly OutgoingMessage[]) {
      const turn = gate();
      held.push(turn);
      await turn.opened;
      return publisher.publish(topic, messages);
    },
  };
}

describe('a sequencer whose topic is slow', () => {
  test('numbers the next group meanwhile, and publishes it after the one before', async () => {
    const { sequencer, publisher, counter } = sequencing(databases, system);
    const slow = heldBack(publisher);
    const { publish, flush } = sequencer({ publisher: slow });
    const first = publish(draft('k1'));
    await vi.waitFor(() => expect(slow.held).toHaveLength(1));
    const second = Promise.all([publish(draft('k2')), publish(draft('k3'))]);
    await vi.waitFor(async () => expect(await counter()).toMatchObject({ next: 4 }));
    expect([slow.held.length, publisher.numbers()]).toEqual([1, []]);
    slow.held[0]?.open();
    expect(await first).toMatchObject({ sequence: 1, messageId: 'm1' });
    await vi.waitFor(() => expect(slow.held).toHaveLength(2));
    slow.held[1]?.open();
    expect((await second).map(({ sequence, messageId }) => [sequence, messageId])).toEqual([
      [2, 'm2'],
      [3, 'm3'],
    ]);
    await flush();
    expect(publisher.numbers()).toEqual([1, 2, 3]);
  });

  test('goes no more than four groups ahead; the next ones wait, and become one', async () => {
    const { sequencer, publisher, counter } = sequencing(databases, system);
    const slow = heldBack(publisher);
    const { publish, flush } = sequencer({ publisher: slow });
    const publishing: Promise<unknown>[] = [];
    for (const n of upTo(8)) {
      publishing.push(publish(draft(`k${n}`)));
      await vi.waitFor(async () => expect(await counter()).toMatchObject({ next: Math.min(n, 5) + 1 }));
    }
    for (const n of upTo(6)) {
      await vi.waitFor(() => expect(slow.held).toHaveLength(n));
      slow.held[n - 1]?.open();
    }
    await Promise.all(publishing);
    await flush();
    expect(publisher.numbers()).toEqual(upTo(8));
    expect(await counter()).toMatchObject({ next: 9, rev: 6 });
  });

  test('leaves to the relay what would be published too late, and does not try it', async () => {
    const { sequencer, publisher, counter, entries } = sequencing(timed, manual);
    const slow = heldBack(publisher);
    const { publish } = sequencer({ publisher: slow, options: { handoffMs: 1_000 } });
    const first = publish(draft('k1'));
    await vi.waitFor(() => expect(slow.held).toHaveLength(1));
    const second = publish(draft('k2'));
    await vi.waitFor(async () => expect(await counter()).toMatchObject({ next: 3 }));
    await manual.time.advance(500);
    for (const left of [await first, await second]) expect(left).not.toHaveProperty('messageId');
    expect(slow.held).toHaveLength(1);
    expect((await entries()).map(({ state }) => state)).toEqual(['pending', 'pending']);
  });
});
