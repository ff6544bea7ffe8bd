import { setTimeout as pause } from 'node:timers/promises';
import { holds } from '../timing.ts';
import { type Cell, cellOf, taskFor } from './cells.ts';
import { plainPart, projectId } from './plan.ts';
import type { Recorded, Stage } from './stage.ts';

export const waitingTopic = 'lossy-waited';
const deadTopic = 'waited-dead';
const last = 10;
const entersWithinMs = 20_000;

/** Resolves to what the dead-letter policy of the subscription takes away: what was nacked five times. */
export async function openWaiting(stage: Stage): Promise<readonly Recorded[]> {
  const nacked = await stage.record(deadTopic);
  const deadLetterPolicy = { deadLetterTopic: `projects/${projectId}/topics/${deadTopic}`, maxDeliveryAttempts: 5 };
  await stage.open(waitingTopic, { deadLetterPolicy });
  return nacked;
}

/** Messages that have to wait for the one before them. */
export async function waitingPart(stage: Stage, predecessorMs: number): Promise<readonly Cell[]> {
  const cells = (['nothing', 'parking'] as const).flatMap((without) => {
    const given = { role: 'none', stop: 'nowhere', consumer: 'waiting', without, last };
    return [
      { cell: cellOf({ ...given, situation: `${last - 1} wait for one that takes ${predecessorMs} ms` }), isLate: false },
      { cell: cellOf({ ...given, situation: `${last - 1} wait for one that comes after ${predecessorMs} ms` }), isLate: true },
    ];
  });
  await Promise.all(
    cells.map(async ({ cell, isLate }) => {
      const publish = (seq: number, delayMs = 0) => stage.publish(waitingTopic, taskFor(cell), plainPart(seq, 0, delayMs));
      if (!isLate) {
        await publish(1, predecessorMs);
        await holds(entersWithinMs, () => stage.sink.begins(cell.cell).length > 0);
      }
      await Promise.all(Array.from({ length: last - 1 }, (_, index) => publish(index + 2)));
      if (!isLate) return;
      await pause(predecessorMs);
      await publish(1);
    }),
  );
  return cells.map(({ cell }) => cell);
}
