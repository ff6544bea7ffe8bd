import { holds } from '../timing.ts';
import type { Book } from './book.ts';
import { type Cell, cellOf, mayRepeat, taskFor } from './cells.ts';
import { leases, plainPart } from './plan.ts';
import type { Stage } from './stage.ts';

/** What the paused process is at: its messages in their order, and the one in whose handler it is. */
type Pause = { readonly cell: Cell; readonly order: readonly number[]; readonly at: number };

const topic = 'lossy-paused';
const longestMs = 60_000;
const last = 3;

const pauses: readonly Pause[] = (['nothing', 'the version of the cursor'] as const).flatMap((without) => {
  const given = { role: 'paused beyond its lease', consumer: 'paused', without, last };
  return [
    { cell: cellOf({ ...given, situation: 'in the handler of the head', stop: 'handler' }), order: [1], at: 1 },
    { cell: cellOf({ ...given, situation: 'in the handler of a parked one', stop: 'handler' }), order: [2, 1], at: 2 },
  ];
});

/** As `kill -STOP` in a handler until another process has taken the stream and gone on; then `kill -CONT`. */
export async function pausedPart(stage: Stage, book: Book, heirTopic: string): Promise<readonly Cell[]> {
  const { sink } = stage;
  const publish = (to: string, { cell }: Pause, order: readonly number[], isTogether: boolean) =>
    order.map((seq, index) => stage.publish(to, taskFor(cell, { count: order.length, isTogether }), plainPart(seq, index)));
  await stage.open(topic);
  for (const { cell, at } of pauses) sink.hold(cell.cell, at);
  await Promise.all(pauses.flatMap((each) => publish(topic, each, each.order, false)));
  // It walks: so its messages come one after the other.
  const paused = await stage.start('paused', { mode: 'walk', subscriptions: [topic], leaseMs: leases.short });
  await Promise.all(pauses.map(({ cell, at }) => sink.entered(cell.cell, at)));
  paused.pause();
  sink.gone('paused');
  for (const { cell, at } of pauses) mayRepeat(cell, at);
  await Promise.all(pauses.flatMap((each) => publish(heirTopic, each, [1, 2, 3], true)));
  await Promise.all(
    pauses.map(async ({ cell }) => {
      const isDone = await holds(longestMs, async () => (await stage.lastOf(cell)).last === last);
      if (!isDone) book.lost(cell, `nobody went on within ${longestMs} ms after a lease of ${leases.short} ms`);
    }),
  );
  const before = await Promise.all(pauses.map(({ cell }) => stage.lastOf(cell)));
  for (const { cell, at } of pauses) sink.release(cell.cell, at);
  paused.resume();
  await Promise.all(
    pauses.map(async ({ cell }, index) => {
      const ended = (line: (typeof paused.lines)[number]) => line.said === 'verdict' && line.cell === cell.cell && line.seq === 1;
      await paused.until(`${cell.cell}: its late end`, ended);
      const verdict = paused.lines.find(ended);
      if (verdict?.said === 'verdict' && verdict.kind === 'ack')
        book.lost(cell, `its message was acked as ${verdict.reason} by the paused process`);
      const after = await stage.lastOf(cell);
      const { last = 0, rev = 0 } = before[index] ?? {};
      if (after.last !== last || after.rev !== rev)
        book.repeated(cell, `its late end moved the cursor from ${last} (rev ${rev}) to ${after.last} (rev ${after.rev})`);
      cell.last = 4;
    }),
  );
  // Copies of all, and the number that follows.
  await Promise.all(pauses.flatMap((each) => publish(heirTopic, each, [1, 2, 3, 4], true)));
  return pauses.map(({ cell }) => cell);
}
