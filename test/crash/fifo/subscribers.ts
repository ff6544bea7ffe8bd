import { type Cell, cellOf, taskFor } from './cells.ts';
import type { Protection } from './controls.ts';
import { plainPart } from './plan.ts';
import type { Stage } from './stage.ts';
import type { Worker } from './worker-process.ts';

/** Numbers of a stream as they come to a process. */
type Situation = {
  readonly name: string;
  readonly order: readonly number[];
  readonly isTogether?: boolean;
  /** Numbers whose handler always fails. */
  readonly poison?: readonly number[];
};
export type Variant = { readonly situation: Situation; readonly without: Protection | 'nothing' };

const parkedBehind: Situation = { name: 'head, two parked behind it', order: [3, 2, 1] };
const head: Situation = { name: 'head', order: [1] };
const oldCopy: Situation = { name: 'old copy', order: [1, 1] };
const situations: readonly Situation[] = [
  head,
  parkedBehind,
  oldCopy,
  { name: 'three at once', order: [1, 2, 3], isTogether: true },
  { name: 'poison head, dead-lettered', order: [1, 2], poison: [1] },
];
const inShort = { pull: new Set([parkedBehind, oldCopy]), push: new Set([head]) } as const;
const variants: readonly Variant[] = [
  ...situations.map((situation) => ({ situation, without: 'nothing' as const })),
  { situation: parkedBehind, without: 'the look behind the head' },
  { situation: parkedBehind, without: 'the park in the commit' },
];

/** A cell whose messages come by a subscription of this kind. */
export type SubscriberCell = { readonly cell: Cell; readonly way: 'pull' | 'push'; readonly variant: Variant };

/** What the deliveries of each variant await, found by going through it once. */
export type Steps = ReadonlyMap<Variant, readonly string[]>;

/** The acks have been given to the client, which has not sent them. */
const acksKept = 'acks kept';
export const keepsItsAcks = ({ cell }: SubscriberCell): boolean => cell.stop === acksKept;

/** What one push subscription may have under way is limited. */
const pushesAtOnce = 90;
const retryPolicy = { minimumBackoff: { nanos: 100_000_000 }, maximumBackoff: { seconds: 1 } };

function cellFor(way: 'pull' | 'push', variant: Variant, stop: string, more: { round?: number; consumer?: string } = {}): SubscriberCell {
  const { situation, without } = variant;
  const numbers = { last: Math.max(...situation.order), dead: situation.poison ?? [] };
  return { cell: cellOf({ role: way, situation: situation.name, stop, without, ...numbers, ...more }), way, variant };
}

export const walkedCells: readonly SubscriberCell[] = variants.map((variant) => cellFor('pull', variant, 'nowhere'));

export async function stepsOf(walker: Worker): Promise<Steps> {
  const steps = walkedCells.map(async ({ cell: { cell }, variant }) => [variant, await stepsOfCell(walker, cell)] as const);
  return new Map(await Promise.all(steps));
}

/** Of a worker that walks. */
export async function stepsOfCell(walker: Worker, cell: string): Promise<readonly string[]> {
  await walker.until(`${cell}: walked`, (line) => line.said === 'ended' && line.cell === cell);
  return walker.lines.flatMap((line) => (line.said === 'ended' && line.cell === cell ? line.steps : []));
}

/**
 * A cell for each step; in short of some situations alone. Controls in the first round of those that pull. Half of the streams go on by redelivery alone, and half by the sweep
 * too, each step in turn.
 */
export const subscriberCells = (way: 'pull' | 'push', steps: Steps, round: number, isShort: boolean): SubscriberCell[] =>
  [...steps].flatMap(([variant, names]) => {
    const isControl = variant.without !== 'nothing';
    if (isControl && (way === 'push' || round > 0)) return [];
    if (isShort && !isControl && !inShort[way].has(variant.situation)) return [];
    const stops = isControl ? names.filter((name) => name.includes(' done')) : way === 'pull' ? [...names, acksKept] : names;
    const consumer = (index: number) => (isControl || (round + index) % 2 === 0 ? 'plain' : 'swept');
    return stops.map((stop, index) => cellFor(way, variant, stop, { round, consumer: consumer(index) }));
  });

/** Publishes what comes to the first process of each cell, on topics of this name. */
export async function publishCells(stage: Stage, name: string, cells: readonly SubscriberCell[]): Promise<readonly string[]> {
  const topics: string[] = [];
  const sent: Promise<void>[] = [];
  let room = 0;
  for (const each of cells) {
    const { order, poison = [], isTogether = false } = each.variant.situation;
    const task = taskFor(each.cell, { stop: each.cell.stop, count: order.length, isTogether });
    if (room < order.length) {
      topics.push(`lossy-${name}-${topics.length}`);
      room = each.way === 'push' ? pushesAtOnce : Number.POSITIVE_INFINITY;
      await stage.open(topics.at(-1) ?? '', each.way === 'push' ? { retryPolicy } : {});
    }
    room -= order.length;
    const topic = topics.at(-1) ?? '';
    sent.push(...order.map((seq, index) => stage.publish(topic, task, { ...plainPart(seq, index), isPoison: poison.includes(seq) })));
  }
  await Promise.all(sent);
  return topics;
}

/** Copies of all that came but of poison, and the number that follows: of these the last alone counts, and the stream goes on. */
export async function publishFurther(stage: Stage, topic: string, { cell, variant }: SubscriberCell): Promise<void> {
  const seqs = new Set(variant.situation.order.filter((seq) => !cell.dead.includes(seq)));
  cell.last = Math.max(...variant.situation.order) + 1;
  await Promise.all([...seqs, cell.last].map((seq) => stage.publish(topic, taskFor(cell), plainPart(seq))));
}
