import type { Protection } from './controls.ts';
import type { Task } from './plan.ts';

/** One stream in one situation, and what its consumer must have seen of it in the end. */
export type Cell = {
  readonly cell: string;
  /** What was killed. */
  readonly role: string;
  readonly situation: string;
  readonly stop: string;
  readonly consumer: string;
  readonly without: Protection | 'nothing';
  /** Numbers 1 to `last`, without those that are dead letters. */
  last: number;
  readonly dead: readonly number[];
  /** How often a number may have come again: it had its effect, and no cursor knew when its process was killed. */
  readonly mayRepeat: Map<number, number>;
  /** Under which key each number was given; the number itself where there is no sequencer. */
  readonly keys: Map<number, string>;
  /** Numbers may come again that are so many behind; more than one where commits are coalesced. */
  readonly span: number;
};

type Given = Pick<Cell, 'role' | 'situation' | 'stop'> & Partial<Cell> & { readonly round?: number };

export function cellOf({ role, situation, stop, round, without = 'nothing', ...given }: Given): Cell {
  const parts = [role, situation, stop, ...(round === undefined ? [] : [`round ${round}`])];
  return {
    cell: `${parts.join(', ')}${without === 'nothing' ? '' : `, without ${without}`}`,
    role,
    situation,
    stop,
    consumer: 'plain',
    without,
    last: 0,
    dead: [],
    mayRepeat: new Map(),
    keys: new Map(),
    span: 1,
    ...given,
  };
}

/** A number of the cell may come once more. */
export const mayRepeat = (cell: Cell, seq: number): void => void cell.mayRepeat.set(seq, (cell.mayRepeat.get(seq) ?? 0) + 1);

/** What a message of the cell tells its consumer, which ends with it or stops where it is told to. */
export const taskFor = ({ cell, consumer, without }: Cell, stops: Partial<Pick<Task, 'stop' | 'count' | 'isTogether'>> = {}): Task => ({
  cell,
  consumer,
  without,
  stop: 'nowhere',
  count: 0,
  isTogether: true,
  ...stops,
});
