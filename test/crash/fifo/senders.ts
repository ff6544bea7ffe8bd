import { setTimeout as pause } from 'node:timers/promises';
import { type Cell, cellOf } from './cells.ts';
import { keyOf, type SenderCell } from './plan.ts';
import { draftOf, groups, handoffMs, sequencerOf } from './sending.ts';
import type { Stage } from './stage.ts';

/** A stream that is sent by a publisher or a relay which is killed. */
export type SentCell = { readonly cell: Cell; readonly sender: SenderCell };

const consumer = 'sent';
export const publisherTopic = 'lossy-published';
/** Without lost answers: what comes twice here was sent twice. */
export const relayTopic = 'relayed';
export const lossyRelayTopic = 'lossy-relayed';
const numbers = groups.flat();

type Made = { readonly stop: string; readonly without?: Cell['without']; readonly round?: number };

export function publisherCell({ stop, without = 'nothing', round }: Made): SentCell {
  const given = { role: 'publisher', situation: 'a message, then three at once', stop, consumer, without };
  const cell = cellOf({ ...given, ...(round !== undefined && { round }) });
  return { cell, sender: { cell: cell.cell, stop, consumer, without, topic: publisherTopic, prefix: '' } };
}

export function relayCell({ stop, round }: Made): SentCell {
  const given = { role: 'relay', situation: 'four entries', stop, consumer };
  const cell = cellOf({ ...given, ...(round !== undefined && { round }) });
  const topic = (round ?? 0) % 2 === 0 ? relayTopic : lossyRelayTopic;
  return { cell, sender: { cell: cell.cell, stop, consumer, without: 'nothing', topic, prefix: '' } };
}

/** Numbered, and left to the relay. Resolves when it is due. */
export async function leaveToRelay(stage: Stage, cells: readonly SentCell[]): Promise<void> {
  const publisher = { publish: () => Promise.reject(new Error('left to the relay')) };
  const left = cells.map(async ({ sender }) => {
    const sequencer = sequencerOf({ ...stage.sending, publisher }, sender);
    await Promise.all(numbers.map((index) => sequencer.publish(draftOf(sender, keyOf(sender.cell, index)))));
    await sequencer.flush();
  });
  await Promise.all(left);
  if (cells.length > 0) await pause(handoffMs);
}

/**
 * The caller publishes all of its messages again under their keys, and one more; what it is told is what the consumer must see.
 * @returns what was told about the same key before and now, where that differs
 */
export async function publishAgain(
  stage: Stage,
  { cell, sender }: SentCell,
  told: ReadonlyMap<string, number>,
): Promise<readonly string[]> {
  const sequencer = sequencerOf(stage.sending, sender);
  const names = [...numbers, numbers.length + 1].map((index) => keyOf(cell.cell, index));
  const answers = await Promise.all(names.map((name) => sequencer.publish(draftOf(sender, name))));
  await sequencer.flush();
  for (const { key, sequence } of answers) cell.keys.set(sequence, key);
  cell.last = names.length;
  return answers.flatMap(({ key, sequence }) => {
    const before = told.get(key) ?? sequence;
    return before === sequence ? [] : [`${key} was given ${before} first and ${sequence} then`];
  });
}
