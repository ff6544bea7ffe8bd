import type { Protection } from './controls.ts';
import { instants, keyOf, type Role, type Task, topics } from './plan.ts';
import { controls, type Situation, situations } from './situations.ts';

/** What is delayed under one id or key in one situation, and what must have been published of it in the end. */
export type Cell = {
  readonly cell: string;
  /** What was killed. */
  readonly role: Role | 'nobody';
  readonly situation: string;
  readonly given: Situation;
  readonly stop: string;
  readonly without: Protection | 'nothing';
  readonly topic: string;
  /** After the death of its process a client asks again. */
  readonly asksAgain: boolean;
  /** When each key is due; no other one may be published. */
  expected: Map<string, number>;
  /** One of these may come twice: its publish was applied, and no record knew when its process was killed. */
  readonly mayCopy: boolean;
};

/** What each way awaits, by situation and role, in its order. */
export type Ways = (situation: Situation, role: Role) => readonly string[];

type Made = Pick<Cell, 'role' | 'given' | 'stop'> & Partial<Pick<Cell, 'without' | 'asksAgain' | 'topic' | 'mayCopy'>>;

function cellOf({ role, given, stop, without = 'nothing', asksAgain = false, ...more }: Made, round: string): Cell {
  const parts = [
    role,
    given.name,
    stop,
    ...(asksAgain ? ['asked again'] : []),
    round,
    ...(without === 'nothing' ? [] : [`without ${without}`]),
  ];
  return {
    cell: parts.join(', '),
    role,
    situation: given.name,
    given,
    stop,
    without,
    asksAgain,
    expected: new Map(),
    topic: topics.plain,
    mayCopy: false,
    ...more,
  };
}

export const walkedCells: readonly Cell[] = situations.map((given) => cellOf({ role: 'nobody', given, stop: 'nowhere' }, 'walk'));

/** A cell for each step of each way, and for one of a client two, of which one is asked again; in short one, in turn. Controls in the first round. */
export function cellsOfRound(ways: Ways, round: number, isShort: boolean): readonly Cell[] {
  const name = `round ${round}`;
  const made = (given: Situation, role: Role, stop: string): Made => ({
    role,
    given,
    stop,
    mayCopy: mayCopy(given, ways(given, role), stop),
  });
  const plain = situations.flatMap((given) =>
    given.roles.flatMap((role) =>
      ways(given, role).flatMap((stop, index) => {
        const inTurn = isShort ? [index % 2 === 0] : [false, true];
        return (role === 'client' ? inTurn : [false]).map((asksAgain) => ({ ...made(given, role, stop), asksAgain }));
      }),
    ),
  );
  // Every fourth one's publish may lose its answer, other ones each round.
  const own = plain.map((each, index) => cellOf({ ...each, topic: (index + round) % 4 === 3 ? topics.lossy : topics.plain }, name));
  if (round > 0) return own;
  const without = controls.flatMap(({ situation, role, without }) =>
    ways(situation, role).map((stop) => cellOf({ ...made(situation, role, stop), without }, name)),
  );
  return [...own, ...without];
}

/** Whether a death there is one between the publish and its record (protocol 5.6). */
function mayCopy({ goesOn = false }: Situation, steps: readonly string[], stop: string): boolean {
  const published = steps.indexOf('publish done');
  const recorded = steps.findIndex((step, index) => index > published && / put done( \d+)?$/.test(step));
  const at = steps.indexOf(stop);
  return !goesOn && published >= 0 && published <= at && at < recorded;
}

/** What one process is told of a cell. */
export const taskFor = ({ cell, role, stop, without, given }: Cell, of: Role): Task => ({
  cell,
  role: of,
  stop: role === of ? stop : 'nowhere',
  without,
  isOld: given.isOld ?? false,
  goesOn: given.goesOn ?? false,
  isUnrepaired: without === 'the repair' || given.isUnrepaired === true,
  count: given.messages.length,
});

/** What comes of its messages, or of its recurrence, where no call changes that. */
export function expectedOf({ cell, given }: Cell, beginMs: number): Map<string, number> {
  if (given.isRecurring)
    return new Map(
      (['due', 'nextOccurrence'] as const).map((name) => {
        const dueAtMs = beginMs + instants[name];
        return [`${keyOf(cell, 1)}@${new Date(dueAtMs).toISOString()}`, dueAtMs];
      }),
    );
  const last = given.messages.at(-1);
  return new Map(last ? [[keyOf(cell, given.messages.length), beginMs + instants[last.due]]] : []);
}
