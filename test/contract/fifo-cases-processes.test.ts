import { expect, test } from 'vitest';
import { seededRandom } from '../../src/emulator/faults.ts';
import type { Handler } from '../../src/shared/ports.ts';
import { pause } from '../../src/shared/waiting.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { fifoTopics } from '../support/fifo-topics.ts';
import { recordingPublisher } from '../support/recording-publisher.ts';
import { upTo } from '../support/sequencing.ts';

const databases = await firestoreDatabases();
const setUp = fifoTopics(databases);
const longestMs = 20;

/** The same for the same seed. */
function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const order = new Map(items.map((item) => [item, random()]));
  return items.toSorted((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0));
}

test('54: 500 messages of 3 streams, shuffled, each tenth twice, to two processes: every stream 1..n, each once, one at a time', async () => {
  const world = await setUp();
  const { sequencer, draft, publisher, topic, system, seqs, until, untilAcked, parked } = world;
  const random = seededRandom(54);
  const lasts = { a: 167, b: 167, c: 166 };
  const recorded = recordingPublisher();
  const { publish } = sequencer({ publisher: recorded });
  const streams = Object.entries(lasts);
  await Promise.all(streams.flatMap(([stream, last]) => upTo(last).map((n) => publish(draft(`${stream}${n}`, { stream })))));
  const numbered = recorded.published.map(({ message }) => message);
  const copies = numbered.filter((_, index) => index % 10 === 0).map((message) => ({ ...message }));

  const inFlight = new Map<string, number>();
  let mostInFlight = 0;
  const handle: Handler = async ({ attributes }) => {
    const stream = attributes['ptk-stream'] ?? '';
    const now = (inFlight.get(stream) ?? 0) + 1;
    inFlight.set(stream, now);
    mostInFlight = Math.max(mostInFlight, now);
    await pause(system.clock, random() * longestMs);
    inFlight.set(stream, now - 1);
  };
  const subscription = await world.subscribe();
  for (const _ of [1, 2]) world.consumer({ subscription, handle });
  const all = shuffled([...numbered, ...copies], random);
  for (let from = 0; from < all.length; from += 50) await publisher.publish(topic, all.slice(from, from + 50));

  await until(() => expect(world.runs).toHaveLength(500), 40_000);
  await untilAcked();
  for (const [stream, last] of streams) expect(seqs(stream)).toEqual(upTo(last));
  expect([mostInFlight, all.length, await parked()]).toEqual([1, 550, []]);
  // Whoever holds a stream runs it on, so of the runs one process may have had all.
  expect(Math.min(...world.received)).toBeGreaterThan(50);
  expect(world.deadLetters.kept).toEqual([]);
}, 60_000);
