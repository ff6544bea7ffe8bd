import { holds } from '../timing.ts';
import type { Book } from './book.ts';
import { type Cell, cellOf, taskFor } from './cells.ts';
import { leases, plainPart } from './plan.ts';
import type { Stage } from './stage.ts';
import type { Worker } from './worker-process.ts';

const topic = 'lossy-pair';
const consumer = 'pair';
const longestHandlerMs = 50;
const shareOfCopies = 0.1;
const longestMs = 180_000;

export type Load = { readonly messages: number; readonly streams: number; readonly kills: number };

/** Two processes on the same streams, which get their messages in any order; one of them is killed now and then, and replaced. */
export async function pairPart(
  stage: Stage,
  book: Book,
  { messages, streams, kills }: Load,
  random: () => number,
): Promise<readonly Cell[]> {
  const cells = Array.from({ length: streams }, (_, index) =>
    cellOf({ role: 'one of two', situation: `${messages} messages shuffled, ${kills} kills`, stop: 'anywhere', round: index, consumer }),
  );
  const parts = Array.from({ length: messages }, (_, index) => {
    const cell = cells[index % streams];
    if (!cell) throw new Error('there are no streams');
    cell.last += 1;
    return { cell, part: plainPart(cell.last, 0, Math.floor(random() * (longestHandlerMs + 1))) };
  });
  const copies = parts.filter(() => random() < shareOfCopies);
  await stage.open(topic);
  await Promise.all(shuffled([...parts, ...copies], random).map(({ cell, part }) => stage.publish(topic, taskFor(cell), part)));

  let started = 0;
  const start = () => stage.start(`pair-${++started}`, { subscriptions: [topic], sweeps: [consumer], leaseMs: leases.short });
  const pair: [Worker, Worker] = await Promise.all([start(), start()]);
  const handled = () => cells.reduce((sum, { cell }) => sum + new Set(stage.sink.begins(cell).map(({ seq }) => seq)).size, 0);
  for (let kill = 1; kill <= kills; kill++) {
    // Somewhere in the part of the messages that is this kill's.
    const at = ((kill - random()) / kills) * messages * 0.9;
    if (!(await holds(longestMs, () => handled() >= at))) break;
    const victim = random() < 0.5 ? 0 : 1;
    await stage.kill(pair[victim], cells);
    pair[victim] = await start();
  }
  await holds(longestMs, () => handled() >= messages);
  for (const cell of cells) if (handled() < messages) book.lost(cell, `${handled()} of ${messages} messages of all after ${longestMs} ms`);
  return cells;
}

function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  const order = items.map((item) => ({ item, at: random() }));
  return order.sort((a, b) => a.at - b.at).map(({ item }) => item);
}
