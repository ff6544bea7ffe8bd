import { FieldValue } from '@google-cloud/firestore';
import { describe, expect, test } from 'vitest';
import { firestoreFifoStore } from '../../src/shared/adapters/firestore-fifo.ts';
import { createFifoCommands } from '../../src/shared/fifo/commands.ts';
import { createFifo, type FifoParts } from '../../src/shared/fifo/fifo.ts';
import type { FifoStore } from '../../src/shared/fifo/store.ts';
import type { Message } from '../../src/shared/message.ts';
import { keptDeadLetters, silentLog, testMessage } from '../../src/testing/doubles.ts';
import { type Delivered, subscriberByHand } from '../support/by-hand.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { type Gate, gate, manualSystem } from '../support/manual-system.ts';

const manual = manualSystem();
const databases = await firestoreDatabases(manual.time);
const [consumer, stream, epoch, leaseMs] = ['ship.ping', 'order/17', 100, 5_000];

/** Number n under key `k<n>`, numbered at 1,000 + n. */
const numbered = (n: number): Delivered => ({
  messageId: `m${n}`,
  data: Buffer.from(`body ${n}`),
  attributes: {
    ...{ 'ptk-stream': stream, 'ptk-seq': `${n}`, 'ptk-epoch': `${epoch}`, 'ptk-key': `k${n}` },
    'ptk-origin-time': new Date(1_000 + n).toISOString(),
  },
});

/** One consumer: a process of the toolkit, which may die once its claim is there, and a subscriber by hand, each with a client of its own. */
function setUp(options: FifoParts['options'] = {}, dies = false) {
  const { client } = databases.open();
  const db = client();
  const runs: string[] = [];
  const hand = subscriberByHand(client(), consumer, stream, epoch, leaseMs);
  const alive = firestoreFifoStore(db, manual.clock);
  let puts = 0;
  const store: FifoStore = { ...alive, put: (...args) => (dies && ++puts > 1 ? new Promise(() => {}) : alive.put(...args)) };
  const shared = { consumer, store, system: manual, log: silentLog, deadLetters: keptDeadLetters() };
  const noted = (who: string, { attributes, data }: Pick<Message, 'attributes' | 'data'>) =>
    void runs.push(`${who} ${attributes['ptk-seq']}: ${Buffer.from(data)}`);
  /** The toolkit's runs of a number wait for its gate. */
  const gates = new Map<number, Gate>();
  const failing = new Set<number>();
  const fifo = createFifo({ ...shared, options: { leaseMs, ...options } })(async (message) => {
    const n = Number(message.attributes['ptk-seq']);
    noted('toolkit', message);
    if (failing.has(n)) throw new Error('cannot');
    await gates.get(n)?.opened;
  });
  const parkedSeqs = async () => (await db.collection('ptk-parked').get()).docs.map((document) => document.get('seq') as number);
  return {
    hand,
    runs,
    gates,
    failing,
    commands: createFifoCommands(shared),
    sweep: fifo.sweep,
    byToolkit: async (n: number) => {
      const { kind, reason } = await fifo(testMessage(numbered(n)), { signal: new AbortController().signal });
      return `${kind} ${reason}`;
    },
    byHand: (n: number) => hand.deliver(numbered(n), (message) => noted('hand', message), manual.clock.nowMs()),
    lookBehindByHand: (by: number) => hand.lookBehind(by, (message) => noted('hand', message)),
    cursor: async () => (await hand.read()).cursor,
    parkedSeqs,
  };
}

describe('a subscriber by hand', () => {
  test('and the toolkit handle the numbers of a stream in turns, each once, in order', async () => {
    const { byHand, byToolkit, runs, cursor } = setUp();
    expect([await byHand(1), await byToolkit(2), await byHand(3), await byToolkit(4)]).toEqual([
      'ack',
      'ack processed',
      'ack',
      'ack processed',
    ]);
    expect([await byToolkit(3), await byHand(2), await byToolkit(1), await byHand(4)]).toEqual(['ack old', 'ack', 'ack old', 'ack']);
    expect(runs).toEqual(['hand 1: body 1', 'toolkit 2: body 2', 'hand 3: body 3', 'toolkit 4: body 4']);
    expect(await cursor()).toMatchObject({ last: 4, runId: '', by: 0, attempts: 0, epoch: 100 });
    expect((await cursor()).recent.map(({ seq, originMs }: { seq: number; originMs: number }) => [seq, originMs])).toEqual([
      [1, 1_001],
      [2, 1_002],
      [3, 1_003],
      [4, 1_004],
    ]);
  });

  test('parks what the toolkit takes out', async () => {
    const { byHand, byToolkit, runs, parkedSeqs } = setUp();
    expect([await byHand(3), await byHand(2)]).toEqual(['ack', 'ack']);
    expect(await parkedSeqs()).toEqual([2, 3]);
    expect(await byToolkit(1)).toBe('ack processed');
    expect(runs).toEqual(['toolkit 1: body 1', 'toolkit 2: body 2', 'toolkit 3: body 3']);
    expect(await parkedSeqs()).toEqual([]);
  });

  test('takes out what the toolkit parked', async () => {
    const { byHand, byToolkit, runs, parkedSeqs } = setUp();
    expect([await byToolkit(3), await byToolkit(2)]).toEqual(['ack parked', 'ack parked']);
    expect(await byHand(1)).toBe('ack');
    expect(runs).toEqual(['hand 1: body 1', 'hand 2: body 2', 'hand 3: body 3']);
    expect(await parkedSeqs()).toEqual([]);
  });

  test('forgets what it parked, and the next sweep of the toolkit runs it', async () => {
    const { hand, byToolkit, sweep, runs, cursor } = setUp();
    await byToolkit(1);
    // It dies before it reads the cursor again.
    await hand.park('early', numbered(2), manual.clock.nowMs());
    await manual.time.advance(59_999);
    expect(await sweep()).toMatchObject({ run: 0 });
    await manual.time.advance(1);
    expect(await sweep()).toMatchObject({ run: 1 });
    expect(runs).toEqual(['toolkit 1: body 1', 'toolkit 2: body 2']);
    expect(await cursor()).toMatchObject({ last: 2 });
  });
});

describe('a lease', () => {
  test('of the hand keeps the toolkit out until it is over, and a commit that comes later is refused', async () => {
    const { hand, byToolkit, runs, cursor } = setUp();
    const held = await hand.claim(await hand.read(), 1);
    expect(await byToolkit(1)).toBe('nack inProgress');
    await manual.time.advance(4_900);
    expect(await byToolkit(1)).toBe('nack inProgress');
    expect(runs).toEqual([]);
    await manual.time.advance(100);
    expect(await byToolkit(1)).toBe('ack processed');
    if (!held) throw new Error('the lease was lost');
    expect(await hand.commit(held, numbered(1))).toBeUndefined();
    expect(await cursor()).toMatchObject({ last: 1, rev: 3 });
  });

  test('that the hand outlived is an attempt to the toolkit', async () => {
    const { hand, byToolkit, runs, cursor } = setUp({ maxAttempts: 1 });
    await hand.claim(await hand.read(), 1);
    await manual.time.advance(leaseMs);
    expect(await byToolkit(1)).toBe('ack parked');
    expect([runs, await cursor()]).toMatchObject([[], { last: 0, blocked: { seq: 1, reason: 'attempts' } }]);
  });

  test('that the hand keeps for another delivery has the toolkit park the head, which the hand then finds', async () => {
    const { hand, byToolkit, lookBehindByHand, runs, parkedSeqs } = setUp();
    const held = await hand.claim(await hand.read(), 1);
    const kept = held && (await hand.commit(held, numbered(1), 1));
    expect(await byToolkit(2)).toBe('ack parked');
    expect(await parkedSeqs()).toEqual([2]);
    if (!kept) throw new Error('the lease was lost');
    await hand.ref.update({ rev: FieldValue.increment(1), runId: '', by: 0 }, { lastUpdateTime: kept.version });
    expect(await lookBehindByHand(1)).toBe('ack');
    expect(runs).toEqual(['hand 2: body 2']);
  });

  test('of the toolkit keeps the hand out, and what the hand parks meanwhile is run by its holder', async () => {
    const { byHand, byToolkit, gates, runs, parkedSeqs } = setUp();
    const running = gate();
    gates.set(1, running);
    const first = byToolkit(1);
    await expect.poll(() => runs).toHaveLength(1);
    expect(await byHand(1)).toBe('nack');
    expect(await byHand(2)).toBe('ack');
    expect(await parkedSeqs()).toEqual([2]);
    running.open();
    expect(await first).toBe('ack processed');
    expect(runs).toEqual(['toolkit 1: body 1', 'toolkit 2: body 2']);
  });

  test('of a process of the toolkit that died is taken over by the hand once it is over, as an attempt', async () => {
    const { hand, byHand, byToolkit, gates, runs, cursor } = setUp({}, true);
    gates.set(1, gate());
    void byToolkit(1);
    await expect.poll(() => runs).toHaveLength(1);
    await manual.time.advance(4_900);
    expect(await byHand(1)).toBe('nack');
    await manual.time.advance(100);
    const held = await hand.claim(await hand.read(), 1);
    expect(held?.cursor).toMatchObject({ attempts: 1, started: 1, by: 1 });
    if (!held) throw new Error('the lease was lost');
    await hand.commit(held, numbered(1));
    expect(await cursor()).toMatchObject({ last: 1, attempts: 0, runId: '' });
  });
});

describe('a blocked stream', () => {
  const blocked = async () => {
    const parts = setUp({ maxAttempts: 1 });
    parts.failing.add(1);
    expect(await parts.byToolkit(1)).toBe('ack parked');
    expect(await parts.cursor()).toMatchObject({ last: 0, runId: '', attempts: 1, blocked: { seq: 1, reason: 'attempts' } });
    expect([await parts.byHand(2), await parts.parkedSeqs()]).toEqual(['ack', [1, 2]]);
    parts.failing.clear();
    return parts;
  };

  test('is let go on by hand, as `resume` does it', async () => {
    const { hand, sweep, runs } = await blocked();
    expect(await hand.command({ attempts: 0, blocked: null })).toBeDefined();
    expect(await sweep(stream)).toMatchObject({ run: 2 });
    expect(runs.slice(1)).toEqual(['toolkit 1: body 1', 'toolkit 2: body 2']);
  });

  test('goes on by hand after the number that the toolkit skips', async () => {
    const { commands, byHand, runs, cursor } = await blocked();
    expect(await commands.skip(stream, 1)).toMatchObject({ kind: 'done' });
    expect(await cursor()).toMatchObject({ last: 1, attempts: 0, blocked: null, skipped: [1] });
    expect(await byHand(2)).toBe('ack');
    expect(runs.slice(1)).toEqual(['hand 2: body 2']);
  });
});
