import { attribute } from '../../../src/shared/message.ts';
import { type Cell, cellOf } from './cells.ts';
import { keyOf, type Outbox, type SenderCell } from './plan.ts';
import type { SentCell } from './senders.ts';
import { draftOf, sequencerOf } from './sending.ts';
import type { Recorded, Stage } from './stage.ts';

/** Nothing but its record is behind it, and no answer of it is lost. */
export const raceTopic = 'raced';
const streams = 3;
/** More than one request of a relay. */
const entries = 150;

/** Streams that several relays get at once, from their outbox; nobody is killed. */
export const races: readonly SentCell[] = (['nothing', 'the lease of the relay'] as const).flatMap((without) =>
  Array.from({ length: streams }, (_, index) => {
    const given = { role: 'none', situation: `two relays at once, ${entries} entries`, stop: 'nowhere', consumer: 'sent', without };
    const cell: Cell = cellOf({ ...given, round: index, last: entries });
    const prefix = without === 'nothing' ? '' : 'control-';
    return { cell, sender: { cell: cell.cell, stop: 'nowhere', consumer: 'sent', without, topic: raceTopic, prefix } };
  }),
);

export const outboxes: readonly Outbox[] = [
  { prefix: '', without: 'nothing' },
  { prefix: 'control-', without: 'the lease of the relay' },
];

export async function numberRaces(stage: Stage): Promise<void> {
  const publisher = { publish: () => Promise.reject(new Error('left to the relay')) };
  await Promise.all(races.map(({ sender }) => numbered(stage, publisher, sender)));
}

/** That all of the protected ones are published, copies apart. */
export function isRun(raced: readonly Recorded[]): boolean {
  const keys = new Set(raced.map(({ attributes }) => attributes[attribute.key]));
  return races.every(({ cell }) => cell.without !== 'nothing' || keys.has(keyOf(cell.cell, entries)));
}

async function numbered(stage: Stage, publisher: Stage['sending']['publisher'], sender: SenderCell): Promise<void> {
  const sequencer = sequencerOf({ ...stage.sending, publisher }, sender);
  const keys = Array.from({ length: entries }, (_, index) => keyOf(sender.cell, index + 1));
  await Promise.all(keys.map((key) => sequencer.publish(draftOf(sender, key))));
  await sequencer.flush();
}
