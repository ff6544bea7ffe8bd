import { documentId, hash } from '../../../src/shared/names.ts';
import type { Book } from './book.ts';
import { type Cell, clockCells, pausedCells, unrenewedCells } from './cells.ts';
import { consumer } from './plan.ts';
import type { Stage } from './stage.ts';
import { verdictOf, type Worker } from './worker-process.ts';

/** The workers of second lives. Each has a topic of its own name, and the heir what the dead have left. */
export type Workers = Readonly<Record<'heir' | 'holder' | 'ahead' | 'paused', Worker>>;

/** So often a worker meets a live lease before its holder may end. */
const meetings = 3;

export async function clockPart(stage: Stage, { holder, ahead }: Workers, chosen: (cell: Cell) => boolean): Promise<void> {
  await Promise.all(
    clockCells.filter(chosen).map(async (cell) => {
      await entered(stage, 'holder', cell);
      await stage.publish('ahead', cell);
      await Promise.any([
        ahead.until(`${cell.cell}: refused`, verdictOf(cell.cell, 'nack'), meetings),
        ahead.until(`${cell.cell}: done`, verdictOf(cell.cell, 'ack')),
      ]);
      stage.sink.release(cell.cell);
      await holder.until(`${cell.cell}: ended`, verdictOf(cell.cell));
    }),
  );
}

/** A run that outlives its lease: another one takes over and ends, and the late end changes nothing. */
export async function outlivedPart(stage: Stage, workers: Workers, book: Book, chosen: (cell: Cell) => boolean): Promise<void> {
  const paused = pausedCells.filter(chosen);
  const unrenewed = unrenewedCells.filter(chosen);
  await Promise.all([
    ...unrenewed.map(async (cell) => {
      await entered(stage, 'holder', cell);
      await outlived(stage, workers, workers.holder, book, cell, async () => {});
    }),
    paused.length > 0 && pausedPart(stage, workers, book, paused),
  ]);
}

async function pausedPart(stage: Stage, workers: Workers, book: Book, cells: readonly Cell[]): Promise<void> {
  await Promise.all(cells.map((cell) => entered(stage, 'paused', cell)));
  workers.paused.pause();
  let running = cells.length;
  const all = Promise.withResolvers<void>();
  const resume = () => {
    if (--running === 0) {
      workers.paused.resume();
      all.resolve();
    }
    return all.promise;
  };
  await Promise.all(cells.map((cell) => outlived(stage, workers, workers.paused, book, cell, resume)));
}

async function outlived(
  stage: Stage,
  { heir }: Workers,
  holder: Worker,
  book: Book,
  cell: Cell,
  resume: () => Promise<void>,
): Promise<void> {
  const name = cell.cell;
  await stage.publish('heir', cell);
  await heir.until(`${name}: taken over`, verdictOf(name, 'ack'));
  const store = await stage.stores.truthOf(cell.setup);
  const stored = async () => (await store.get(documentId(consumer, hash(name))))?.record;
  const before = await stored();
  stage.sink.release(name);
  await resume();
  await holder.until(`${name}: its late end`, verdictOf(name));
  const after = await stored();
  if (after?.runId !== before?.runId || after?.state !== 'done') {
    book.repeated(cell, `after the late end the record shows ${after?.state} of run ${after?.runId}, expected done of ${before?.runId}`);
  }
  const isCounted = holder.lines.some((line) => line.said === 'zombie' && line.cell === name);
  if (!isCounted) book.repeated(cell, `the run that outlived its lease is not counted as a zombie`);
}

/** Its handler is between claim and end, and stays there until its release. */
export async function entered(stage: Stage, topic: string, cell: Cell): Promise<void> {
  stage.sink.hold(cell.cell);
  await stage.publish(topic, cell);
  await stage.sink.entered(cell.cell);
}
