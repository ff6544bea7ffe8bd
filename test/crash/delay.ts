import { parseArgs } from 'node:util';
import { seededRandom } from '../../src/emulator/server.ts';
import { type Book, createBook } from './book.ts';
import { type Cell, cellsOfRound, walkedCells } from './delay/cells.ts';
import { judge, messagesIn, repeatsIn } from './delay/judge.ts';
import { killedCrew, walkingCrew, waysOf } from './delay/lives.ts';
import { topics } from './delay/plan.ts';
import { playRound } from './delay/rounds.ts';
import { controls } from './delay/situations.ts';
import { faults, openStage } from './delay/stage.ts';
import type { CrashTest } from './figures.ts';
import { timing } from './timing.ts';

const rounds = 4;
const processes = { function: 3, client: 3, hop: 1, release: 4 } as const;
const oneProcess = { function: 1, client: 1, hop: 1, release: 1 } as const;
const protections = [...new Set(controls.map(({ without }) => without))];

/**
 * The function, the release and clients killed at each await of theirs, whichever those are, while answers are lost. `--short` is one round,
 * with one process for each.
 */
export const crashTest: CrashTest = async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: { seed: { type: 'string' }, cells: { type: 'string', default: '' }, short: { type: 'boolean', default: false } },
  });
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`seed ${seed}`);
  const random = seededRandom(seed);
  const stage = await openStage();
  const book: Book<Cell> = createBook({
    judge: (cell) => judge(cell, stage.published(cell.cell)),
    effects: ({ cell }) => messagesIn(stage.published(cell)).length,
    // Where answers are lost, the client sends again by itself.
    repeats: ({ cell, topic }) => (topic === topics.plain ? repeatsIn(stage.published(cell)) : 0),
  });
  const mark = timing();
  try {
    const [walker, ...heirs] = await Promise.all([
      stage.start('walker', 'walk'),
      stage.start('heir-1', 'work'),
      stage.start('heir-2', 'work'),
    ]);
    stage.front.leadOthers(heirs);
    await playRound({ stage, book, name: 'walk', cells: walkedCells, crew: walkingCrew(stage, walker, walkedCells) });
    mark('every way gone once');
    await stage.setFaults(faults);
    const ways = waysOf(walker, walkedCells);
    const all: Cell[] = [...walkedCells];
    for (let round = 0; round < (values.short ? 1 : rounds); round++) {
      const cells = cellsOfRound(ways, round, values.short).filter(({ cell }) => cell.includes(values.cells));
      const killing = { stage, book, cells, round, processes: values.short ? oneProcess : processes, random };
      await playRound({ stage, book, name: `round ${round}`, cells, crew: killedCrew(killing) });
      all.push(...cells);
      mark(`round ${round} of ${cells.length} cells over, ${stage.kills()} kills`);
    }
    for (const cell of all) book.judge(cell);
    book.print();
    console.log(`answers: ${stage.front.answers()}; faults: ${await stage.faulted()}`);
    const controlsCaught = book.printControls(protections);
    const { lost, repeated } = book.broken();
    const cells = all.filter(({ without, role }) => without === 'nothing' && role !== 'nobody').length;
    const figures = { cells, kills: stage.kills(), lost, undocumentedRepeats: repeated, controlsCaught };
    return { figures, controls: protections.length };
  } finally {
    await stage.close();
  }
};
