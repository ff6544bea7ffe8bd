import { setTimeout as pause } from 'node:timers/promises';
import type { Book } from './book.ts';
import { leases } from './plan.ts';
import { leaveToRelay, type SentCell } from './senders.ts';
import type { Stage } from './stage.ts';
import { keepsItsAcks, publishCells, type SubscriberCell } from './subscribers.ts';
import type { Worker } from './worker-process.ts';

/** What stops in one process. */
export type Doomed = {
  readonly name: string;
  readonly publishers: readonly SentCell[];
  readonly relays: readonly SentCell[];
  readonly subscribers: readonly SubscriberCell[];
};

/** First lives: processes that were killed at the stops of their cells. The topics of theirs are left behind. */
export type Life = Doomed & { readonly worker: Worker; readonly pulled: readonly string[]; readonly pushed: readonly string[] };

/** So many processes start at once. */
const lanes = 3;

/** Kills each process a moment of the seed after all of its cells have stopped. */
export async function killedLives(stage: Stage, book: Book, doomed: readonly Doomed[], random: () => number): Promise<Life[]> {
  const left = [...doomed];
  const lives: Life[] = [];
  const lane = async () => {
    for (let next = left.shift(); next; next = left.shift()) lives.push(await killedLife(stage, book, next, random));
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return lives;
}

async function killedLife(stage: Stage, book: Book, doomed: Doomed, random: () => number): Promise<Life> {
  const { name, publishers, relays, subscribers } = doomed;
  const ofWay = (way: 'pull' | 'push') =>
    publishCells(
      stage,
      `${name}-${way}`,
      subscribers.filter((each) => each.way === way),
    );
  const [pulled, pushed] = await Promise.all([ofWay('pull'), ofWay('push'), leaveToRelay(stage, relays)]);
  const worker = await stage.start(name, {
    mode: 'stop',
    leaseMs: leases.short,
    publishers: publishers.map(({ sender }) => sender),
    relays: relays.map(({ sender }) => sender),
    subscriptions: pulled,
    keepsAcks: subscribers.some(keepsItsAcks),
    takesPushes: pushed.length > 0,
  });
  await stage.pushTo(pushed, worker);
  const cells = [...publishers, ...relays, ...subscribers].map(({ cell }) => cell);
  await worker.until('stopped with all cells', ({ said }) => said === 'stopped' || said === 'ended', cells.length);
  await pause((random() * leases.short) / 3);
  const read = subscribers.map(({ cell }) => cell);
  await stage.kill(worker, read);
  const ended = new Set(worker.lines.flatMap((line) => (line.said === 'ended' ? [line.cell] : [])));
  for (const each of subscribers) if (ended.has(each.cell.cell) && !keepsItsAcks(each)) book.unreached(each.cell);
  for (const { cell } of [...publishers, ...relays]) if (ended.has(cell.cell)) book.unreached(cell);
  return { ...doomed, worker, pulled, pushed };
}
