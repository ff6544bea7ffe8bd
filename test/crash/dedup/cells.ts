import type { Protection } from './controls.ts';
import { inboxStops, leaseStops, redisFaults, type Setup, type Stop, type Task, twoTierStops } from './plan.ts';

/** One message in one situation, and how often it must have its effect in the end. */
export type Cell = Task & {
  readonly situation: string;
  /** More than one where a repeat is documented. */
  readonly effects: number;
};

/** Those that outlive the process, in lease mode. */
export const leaseSetups = ['firestore', 'redis', 'twoTier'] as const satisfies readonly Setup[];

type Given = { readonly setup: Setup; readonly situation: string; readonly effects: number } & Partial<Task>;

const cellOf = ({ setup, situation, without = 'nothing', ...given }: Given): Cell => ({
  cell: `${setup}, ${situation}${without === 'nothing' ? '' : `, without ${without}`}`,
  setup,
  situation,
  without,
  stop: 'nowhere',
  renewals: 'made',
  lease: 'short',
  ...given,
});

/** A worker killed here has had the effect, and no store knows. */
const documentedRepeats: readonly Stop[] = ['after the effect', 'end sent'];

const killedAt = (setup: Setup, stop: Stop, without?: Protection): Cell =>
  cellOf({
    setup,
    situation: stop,
    stop,
    effects: setup !== 'inbox' && documentedRepeats.includes(stop) ? 2 : 1,
    ...(without && { without }),
  });

/** The stops of one kind of record alone share a process with another one. */
const sharedProcess: Readonly<Partial<Record<Stop, Stop>>> = {
  'before the transaction': 'claim sent',
  'before the write': 'before the effect',
  'after the write': 'after the effect',
  'before the commit': 'end sent',
  'commit applied': 'end applied',
  'end in Firestore alone': 'end applied',
};

/** Cells with which one process is killed: those of one stop, or in short all but those whose process keeps its acks. */
export function processOf({ stop, without }: Cell, short: boolean): string {
  if (stop === 'nowhere' || stop === 'ack called') return stop;
  if (short) return 'all stops';
  return without === 'nothing' ? (sharedProcess[stop] ?? stop) : 'controls';
}

/** A part of the matrix: between them these stops show what each of the protections is for. */
const controlStops = ['before the effect', 'after the effect', 'verdict known'] as const;
const killedControls = ['the claim', 'the ack after the handler', 'done at the end alone'] as const;

/** Their worker is killed at their stop. */
export const killedCells: readonly Cell[] = [
  ...leaseSetups.flatMap((setup) => (setup === 'twoTier' ? twoTierStops : leaseStops).map((stop) => killedAt(setup, stop))),
  ...inboxStops.map((stop) => killedAt('inbox', stop)),
  ...killedControls.flatMap((without) => leaseSetups.flatMap((setup) => controlStops.map((stop) => killedAt(setup, stop, without)))),
  ...(['before the commit', 'commit applied'] as const).map((stop) => killedAt('inbox', stop, 'the marker of the inbox')),
];

const clockCell = (setup: Setup, without?: Protection) =>
  cellOf({ setup, situation: 'a worker 60 s ahead meets its live lease', effects: 1, lease: 'long', ...(without && { without }) });

export const clockCells: readonly Cell[] = [
  ...leaseSetups.map((setup) => clockCell(setup)),
  ...leaseSetups.map((setup) => clockCell(setup, 'the clock of the store')),
];

export const pausedCells: readonly Cell[] = leaseSetups.map((setup) =>
  cellOf({ setup, situation: 'its worker is paused beyond its lease', effects: 2 }),
);

const unrenewedCell = (setup: Setup, without?: Protection) =>
  cellOf({ setup, situation: 'its worker renews nothing', effects: 2, renewals: 'missing', ...(without && { without }) });

export const unrenewedCells: readonly Cell[] = [
  ...leaseSetups.map((setup) => unrenewedCell(setup)),
  ...leaseSetups.map((setup) => unrenewedCell(setup, 'the version at the end')),
];

/** Redis alone may repeat once what it has forgotten; with Firestore behind it nothing is forgotten. */
const forgetting = ['redis', 'twoTier'] as const;

const redisCells = (situation: string, repeats: number, stop: Task['stop'] = 'nowhere'): readonly Cell[] =>
  redisFaults.flatMap((fault) =>
    forgetting.map((kind) =>
      cellOf({ setup: `${kind} ${fault}`, situation, stop, effects: kind === 'redis' ? 1 + repeats : 1, lease: 'long' }),
    ),
  );

export const goingOnCells = redisCells('between claim and end, and its worker goes on', 0);
export const copiedCells = redisCells('between claim and end, and another worker gets a copy', 1);
/** Their worker stays at its stop until their Redis has lost what it held. */
export const stoppedCells = redisCells('between end and ack, and its worker dies', 1, 'verdict known');

export const everyCell: readonly Cell[] = [
  ...killedCells,
  ...clockCells,
  ...pausedCells,
  ...unrenewedCells,
  ...goingOnCells,
  ...copiedCells,
  ...stoppedCells,
];

export const raceCells = (setup: Setup, keys: number): readonly Cell[] =>
  Array.from({ length: keys }, (_, key) => cellOf({ setup, situation: `raced message ${key + 1}`, effects: 1, lease: 'long' }));
