import { parseArgs } from 'node:util';
import { seededRandom } from '../../src/emulator/server.ts';
import { textOf } from '../../src/shared/errors.ts';
import { type Book, createBook } from './dedup/book.ts';
import { type Cell, everyCell, killedCells, stoppedCells } from './dedup/cells.ts';
import { clockPart, outlivedPart, type Workers } from './dedup/leases.ts';
import { killedLives, lateWrites, stoppedLife } from './dedup/lives.ts';
import type { LateWrite } from './dedup/plan.ts';
import { type Race, racePart } from './dedup/races.ts';
import { redisPart } from './dedup/redis-loss.ts';
import { openStage, type Stage } from './dedup/stage.ts';
import { verdictOf, type Worker } from './dedup/worker-process.ts';
import type { CrashTest } from './figures.ts';
import { timing } from './timing.ts';

const clockAheadMs = 60_000;
const longestRedeliveryMs = 60_000;
const race: Race = { keys: 40, copies: 50 };
const shortRace: Race = { keys: 8, copies: 20 };

/**
 * Workers killed at each await between receive and ack, on each store; leases met, outlived and lost; races. `--short` kills two processes
 * with all that the long form kills one by one.
 */
export const crashTest: CrashTest = async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: { seed: { type: 'string' }, cells: { type: 'string', default: '' }, short: { type: 'boolean', default: false } },
  });
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`seed ${seed}`);
  const chosen = ({ cell }: Cell) => cell.includes(values.cells);
  const cells = everyCell.filter(chosen);
  const book = createBook();
  const stage = await openStage();
  const mark = timing();
  try {
    const stopped = stoppedCells.some(chosen) ? await stoppedLife(stage, 'stopped', stoppedCells.filter(chosen)) : undefined;
    const lives = await killedLives(stage, killedCells.filter(chosen), values.short, seededRandom(seed));
    mark(`${lives.length} workers killed`);
    const left = [...lives, ...(stopped ? [stopped] : [])];
    const workers = await startWorkers(
      stage,
      left.map(({ topic }) => topic),
    );
    mark(`${Object.keys(workers).length} workers started`);
    await Promise.all([
      clockPart(stage, workers, chosen),
      outlivedPart(stage, workers, book, chosen),
      redisPart(stage, workers, stopped, chosen),
    ]);
    mark('leases met, outlived and lost');
    const unacked = await stage.backlog(longestRedeliveryMs);
    mark(`${unacked} messages without an ack`);
    const late = lateWrites(lives);
    await Promise.all(cells.map((cell) => checkCell(stage, workers.heir, book, cell, late.get(cell.cell))));
    mark('late writes and further copies sent');
    const races = await racePart(stage, workers, book, values.short ? shortRace : race, chosen);
    mark('races run');
    book.print();
    for (const line of races) console.log(line);
    if (unacked > 0) throw new Error(`${unacked} messages were without an ack ${longestRedeliveryMs} ms after their workers were killed`);
    const controls = printControls(book, chosen);
    const own = cells.filter(({ without }) => without === 'nothing');
    const { lost, repeated } = book.broken();
    const figures = { cells: own.length + races.length, kills: left.length, lost, undocumentedRepeats: repeated };
    return { figures: { ...figures, controlsCaught: controls.filter(({ isCaught }) => isCaught).length }, controls: controls.length };
  } finally {
    await stage.close();
  }
};

/** A worker for each role, with a topic of its name; all of them pull the races, and the heir what the dead have left. */
async function startWorkers(stage: Stage, left: readonly string[]): Promise<Workers> {
  await Promise.all(['heir', 'holder', 'ahead', 'paused', 'race'].map(stage.open));
  const [heir, holder, ahead, paused] = await Promise.all([
    stage.start('heir', { subscriptions: ['heir', 'race', ...left] }),
    stage.start('holder', { subscriptions: ['holder', 'race'] }),
    stage.start('ahead', { subscriptions: ['ahead', 'race'], clockAheadMs }),
    stage.start('paused', { subscriptions: ['paused', 'race'] }),
  ]);
  return { heir, holder, ahead, paused };
}

/**
 * With nothing left to ack: the effects are as expected, what the dead worker sent and arrives only now is refused, and a further copy
 * is acked as a duplicate.
 */
async function checkCell(stage: Stage, heir: Worker, book: Book, cell: Cell, late: LateWrite | undefined): Promise<void> {
  const made = await stage.made(cell);
  book.seen(cell, made);
  const isAcked = verdictOf(cell.cell, 'ack');
  const acks = heir.lines.filter(isAcked).length;
  if (cell.stop !== 'nowhere' && acks === 0) book.lost(cell, 'not delivered again after its worker was killed');
  if (late) {
    const store = await stage.stores.truthOf(cell.setup);
    const put = await store.put(late.key, late.record, late.expected, late.keepMs);
    if ('version' in put) book.repeated(cell, 'a write of the dead worker that came late was applied');
  }
  await stage.publish('heir', cell);
  await heir.until('a further copy acked', isAcked, acks + 1).catch((error: unknown) => book.lost(cell, textOf(error)));
  const last = heir.lines.findLast(isAcked);
  if (last?.said === 'verdict' && last.reason !== 'duplicate') book.repeated(cell, `a further copy was ${last.reason}, expected duplicate`);
  const again = (await stage.made(cell)) - made;
  if (again !== 0) book.repeated(cell, `a further copy had ${again} effects`);
}

/** Of the controls that are run in full. */
function printControls(book: Book, chosen: (cell: Cell) => boolean) {
  const controls = [...Map.groupBy(everyCell, ({ without }) => without)].filter(
    ([without, cells]) => without !== 'nothing' && cells.every(chosen),
  );
  return controls.map(([without]) => {
    const [first, ...others] = book.findings().filter(({ cell }) => cell.without === without);
    const what = first ? `${first.kind}: ${first.cell.cell}: ${first.text} (and ${others.length} more)` : 'NOT CAUGHT';
    console.log(`control without ${without}: ${what}`);
    return { isCaught: first !== undefined };
  });
}
