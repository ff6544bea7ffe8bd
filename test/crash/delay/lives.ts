import { setTimeout as pause } from 'node:timers/promises';
import type { Book } from '../book.ts';
import type { Cell, Ways } from './cells.ts';
import { goOnPath, type Role } from './plan.ts';
import type { Stage } from './stage.ts';
import type { Worker } from './worker-process.ts';

/** Cells whose ways in a role lead to one process. */
export type Life = { readonly worker: Worker; readonly cells: readonly Cell[]; readonly role: Role };

/** In which processes the ways of cells come to their stops, and what becomes of those. */
export type Crew = {
  open(role: Role): Promise<readonly Life[]>;
  end(lives: readonly Life[]): Promise<void>;
};

/** Whether every cell has come to its stop, or to its end without one. */
export const isThrough = (lives: readonly Life[]): boolean =>
  lives.every(({ worker, cells, role }) => areIn(cells, worker, role, ['stopped', 'ended']));

function areIn(cells: readonly Cell[], { lines }: Worker, role: Role, says: readonly string[]): boolean {
  const said = new Set(lines.flatMap((line) => ('role' in line && line.role === role && says.includes(line.said) ? [line.cell] : [])));
  return cells.every(({ cell }) => said.has(cell));
}

/** Goes every way, and is not killed. */
export function walkingCrew(stage: Stage, walker: Worker, cells: readonly Cell[]): Crew {
  return {
    async open(role) {
      const own = cells.filter(({ given }) => given.roles.includes(role));
      stage.front.lead(own, role, walker);
      return [{ worker: walker, cells: own, role }];
    },
    async end() {},
  };
}

/** What a walker told. */
export const waysOf =
  (walker: Worker, walked: readonly Cell[]): Ways =>
  (situation, role) => {
    const { cell = '' } = walked.find(({ given }) => given === situation) ?? {};
    const line = walker.lines.find((each) => each.said === 'ended' && each.cell === cell && each.role === role);
    return line?.said === 'ended' ? line.steps : [];
  };

type Killing = {
  readonly stage: Stage;
  readonly book: Book<Cell>;
  readonly cells: readonly Cell[];
  readonly round: number;
  /** How many processes the cells of each role are dealt to. */
  readonly processes: Readonly<Record<Role, number>>;
  readonly random: () => number;
};

const longestPauseMs = 500;

/** Until all that goes on after its stop has come to its end. */
async function goOn(stage: Stage, { worker, cells, role }: Life): Promise<void> {
  const going = cells.filter(({ given }) => given.goesOn);
  if (going.length === 0) return;
  await fetch(worker.url + goOnPath);
  await stage.until('gone on after their stops', () => areIn(going, worker, role, ['ended']));
}

/** Each process is killed a moment of the seed after all of its cells have stopped. */
export function killedCrew({ stage, book, cells, round, processes, random }: Killing): Crew {
  return {
    async open(role) {
      const ofRole = cells.filter((cell) => cell.role === role);
      const count = Math.min(processes[role], ofRole.length);
      const starting = Array.from({ length: count }, async (_, number): Promise<Life> => {
        const own = ofRole.filter((_, index) => index % count === number);
        const worker = await stage.start(`${role}-${round}-${number}`, 'stop');
        stage.front.lead(own, role, worker);
        return { worker, cells: own, role };
      });
      return Promise.all(starting);
    },
    async end(lives) {
      await Promise.all(
        lives.map(async (life) => {
          const { worker, cells: own } = life;
          await goOn(stage, life);
          await pause(100 + random() * longestPauseMs);
          await stage.kill(worker);
          const stopped = new Set(worker.lines.flatMap((line) => (line.said === 'stopped' ? [line.cell] : [])));
          for (const cell of own) if (!stopped.has(cell.cell)) book.unreached(cell);
        }),
      );
    },
  };
}
