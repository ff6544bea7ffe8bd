import { expect, test } from 'vitest';
import { createDelays } from '../../src/shared/delay/delays.ts';
import { createRelease } from '../../src/shared/delay/release.ts';
import type { Released } from '../../src/shared/delay/release-record.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { Task } from '../../src/shared/index.ts';
import { memoryRecordStore } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';

type Choose = (options: number) => number;
type World = ReturnType<typeof setUpDelay>;

/** Runs a world once for every way that its choices can go. */
async function everyWay(run: (choose: Choose) => Promise<void>): Promise<number> {
  let way: { readonly chosen: number; readonly options: number }[] = [];
  for (let ways = 1; ; ways++) {
    const path = way;
    let step = 0;
    way = [];
    await run((options) => {
      const chosen = path[step++]?.chosen ?? 0;
      way.push({ chosen, options });
      return chosen;
    });
    while (way.length > 0 && (way.at(-1)?.chosen ?? 0) + 1 === way.at(-1)?.options) way.pop();
    const last = way.pop();
    if (!last) return ways;
    way.push({ ...last, chosen: last.chosen + 1 });
  }
}

/** Calls that wait to be let through, of whoever runs at the same time. */
function gates(world: World, choose: Choose, faults: number) {
  const waiting: (() => void)[] = [];
  let faultsLeft = faults;
  const passed = () => new Promise<void>((resolve) => void waiting.push(resolve));
  const gated =
    <A extends unknown[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      await passed();
      return call(...args);
    };
  /** Applied; the caller hears so, or that nobody knows. */
  const unsure =
    <A extends unknown[], T>(call: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      const result = await call(...args);
      if (faultsLeft === 0 || choose(2) === 0) return result;
      faultsLeft -= 1;
      throw new ToolkitError('STORE_UNAVAILABLE', 'the answer is lost');
    };
  const { ledger, publisher } = world.parts;
  const parts = {
    ...world.parts,
    ledger: { ...ledger, get: gated(ledger.get), look: gated(ledger.look), put: gated(unsure(ledger.put)) },
    publisher: { publish: gated(publisher.publish) },
    store: memoryRecordStore<never>(world.system.clock),
    deadLetters: world.deadLetters,
  };
  /** One call after the other goes on, each of those that wait in its turn. */
  const ended = async <T>(work: Promise<T>): Promise<T> => {
    let isDone = false;
    const done = work.finally(() => {
      isDone = true;
    });
    done.catch(() => {});
    for (let turn = 0; turn < 200; turn++) {
      await world.system.time.settled();
      if (isDone) return done;
      if (waiting.length === 0) await world.system.time.advance(10);
      else waiting.splice(waiting.length === 1 ? 0 : choose(waiting.length), 1)[0]?.();
    }
    throw new Error('it does not end');
  };
  return { parts, ended };
}

const draft = { data: Buffer.from('x'), key: 'k', attributes: { 'ptk-stream': 's', 'ptk-epoch': '100', 'ptk-seq': '5' } };

/** A message that is due, whose task is dispatched as often as told while somebody calls. */
async function raced<T>(choose: Choose, dispatches: number, faults: number, call: (delays: World['delays']) => Promise<T>) {
  const world = setUpDelay();
  await world.delays.schedule(draft, { id: 'order 7', inMs: 0 });
  const task: Task = world.task(0) ?? expect.fail();
  const { parts, ended } = gates(world, choose, faults);
  const releasing = createRelease(parts);
  const dispatch = (attempt: number) => releasing({ id: task.id, queue: 'q', body: Buffer.from(task.body).toString(), attempt });
  const calling = call(createDelays(parts));
  const dispatching = Promise.all(Array.from({ length: dispatches }, (_, index) => dispatch(index + 1)));
  const [answer, outcomes] = await ended(Promise.all([calling, dispatching]));
  // A queue dispatches until a dispatch ends.
  for (let late = await ended(dispatch(9)); late.kind === 'busy'; late = await ended(dispatch(9))) await world.system.time.advance(60_000);
  const published = world.topics.filter(([, { attributes }]) => attributes['ptk-tombstone'] === undefined).length;
  const tombstones = new Set(world.topics.flatMap(([, { attributes }]) => attributes['ptk-tombstone'] ?? []));
  const kinds = outcomes.map(({ kind }: Released) => kind);
  return { ...world, answer, kinds, published, tombstones: [...tombstones], entryState: (await world.delays.get('order 7'))?.state };
}

const seen = (found: Set<string>) => [...found].toSorted();

test.each([
  { dispatches: 1, faults: 0, least: 15 },
  { dispatches: 2, faults: 0, least: 500 },
  { dispatches: 1, faults: 1, least: 40 },
])(
  'a cancel against $dispatches dispatched at once, with $faults of the answers lost, however their calls interleave, has one outcome, and its answer says which',
  async ({ dispatches, faults, least }) => {
    const answers = new Set<string>();
    const ways = await everyWay(async (choose) => {
      const { answer, published, tombstones, entryState, kinds } = await raced(choose, dispatches, faults, ({ cancel }) =>
        cancel('order 7'),
      );
      answers.add(answer.outcome);
      if (answer.outcome === 'cancelled') {
        expect([published, tombstones, entryState]).toEqual([0, ['cancelled'], 'cancelled']);
        expect(kinds).toEqual(kinds.map(() => 'ended'));
      } else {
        expect([published, tombstones, entryState]).toEqual([1, [], 'fired']);
      }
    });
    expect(seen(answers)).toEqual(['cancelled', 'tooLate']);
    expect(ways).toBeGreaterThanOrEqual(least);
  },
);

test('a new time against a dispatch, however their calls interleave, has one outcome, and its answer says which', async () => {
  const answers = new Set<string>();
  await everyWay(async (choose) => {
    const { answer, published, entryState, tasks } = await raced(choose, 1, 1, ({ reschedule }) =>
      reschedule('order 7', 1_767_229_200_000),
    );
    answers.add(answer.outcome);
    if (answer.outcome === 'rescheduled') {
      expect([published, entryState]).toEqual([0, 'pending']);
      expect([...tasks.values()].map(({ scheduledForMs }) => scheduledForMs)).toEqual([1_767_229_200_000]);
    } else {
      expect([answer.outcome, published, entryState]).toEqual(['tooLate', 1, 'fired']);
    }
  });
  expect(seen(answers)).toEqual(['rescheduled', 'tooLate']);
});

test('two cancels and a dispatch, however their calls interleave, agree', async () => {
  const answers = new Set<string>();
  await everyWay(async (choose) => {
    const { answer, published } = await raced(choose, 1, 0, ({ cancel }) => Promise.all([cancel('order 7'), cancel('order 7')]));
    const outcomes = answer.map(({ outcome }) => outcome);
    answers.add(outcomes.join());
    expect([outcomes[0], published]).toEqual([outcomes[1], outcomes[0] === 'cancelled' ? 0 : 1]);
  });
  expect(seen(answers)).toEqual(['cancelled,cancelled', 'tooLate,tooLate']);
});

test('the same id again against a dispatch, however their calls interleave, is published itself, and what it replaces at most once', async () => {
  const before = new Set<number>();
  await everyWay(async (choose) => {
    const again = { ...draft, key: 'l', attributes: {} };
    const { published, entryState, tasks, topics, release } = await raced(choose, 1, 1, ({ schedule }) =>
      schedule(again, { id: 'order 7', inMs: 0 }),
    );
    before.add(published);
    expect(entryState).toBe('pending');
    for (const task of tasks.values()) await release(task);
    const keys = topics.filter(([, { attributes }]) => !attributes['ptk-tombstone']).map(([, { attributes }]) => attributes['ptk-key']);
    expect(keys).toEqual(published === 0 ? ['l'] : ['k', 'l']);
  });
  expect([...before].toSorted()).toEqual([0, 1]);
});
