import { expect, test } from 'vitest';
import type { Entry } from '../../src/shared/outbox/decide.ts';
import { createMarker } from '../../src/shared/outbox/marks.ts';
import type { Mark, StreamStore } from '../../src/shared/outbox/store.ts';
import { type Gate, gate } from '../support/manual-system.ts';

const marksOf = (stream: string, count: number, bodyBytes = 0): Mark[] =>
  Array.from({ length: count }, (_, index) => {
    const message = { data: new Uint8Array(bodyBytes), attributes: {} };
    return { id: `${stream}-${index}`, messageId: 'm', entry: { stream, message, keepBody: bodyBytes > 0 } as unknown as Entry };
  });

/** A store whose commits wait until they are let go, and what is in each. */
function setUp(failing: readonly number[] = []) {
  const commits: Record<string, number>[] = [];
  const held: Gate[] = [];
  const markPublished: StreamStore['markPublished'] = async (marks) => {
    const place = commits.push(
      Object.fromEntries([...Map.groupBy(marks, ({ entry }) => entry.stream)].map(([key, all]) => [key, all.length])),
    );
    const turn = gate();
    held.push(turn);
    await turn.opened;
    if (failing.includes(place)) throw new Error('down');
  };
  const mark = createMarker({ markPublished } as unknown as StreamStore, 1_000);
  return { mark, commits, letGo: (from: number) => held.slice(from).forEach((turn) => void turn.open()) };
}

test('while four commits are under way the marks of other streams gather, and share the next; one that fails fails those in it', async () => {
  const { mark, commits, letGo } = setUp([5]);
  const first = ['a', 'b', 'c', 'd'].map((stream) => mark(marksOf(stream, 1)));
  const then = Promise.allSettled([mark(marksOf('e', 2)), mark(marksOf('f', 3))]);
  expect(commits).toEqual([{ a: 1 }, { b: 1 }, { c: 1 }, { d: 1 }]);
  letGo(0);
  await Promise.all(first);
  expect(commits.slice(4)).toEqual([{ e: 2, f: 3 }]);
  letGo(4);
  expect((await then).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
});

test.each([
  ['400 marks', [200, 200, 1], 0, [{ e: 200, f: 200 }, { g: 1 }]],
  ['8 MiB of bodies that are kept', [4, 4, 1], 1_000_000, [{ e: 4, f: 4 }, { g: 1 }]],
])('a commit holds no more than %s', async (_, counts, bodyBytes, expected) => {
  const { mark, commits, letGo } = setUp();
  const first = ['a', 'b', 'c', 'd'].map((stream) => mark(marksOf(stream, 1)));
  const then = ['e', 'f', 'g'].map((stream, index) => mark(marksOf(stream, counts[index] ?? 0, bodyBytes)));
  letGo(0);
  await Promise.all(first);
  letGo(4);
  await Promise.all(then);
  expect(commits.slice(4)).toEqual(expected);
});
