import { type Cell, copiedCells, goingOnCells } from './cells.ts';
import { entered, type Workers } from './leases.ts';
import type { Life } from './lives.ts';
import { redisFaults } from './plan.ts';
import type { Stage } from './stage.ts';
import { verdictOf } from './worker-process.ts';

/** Redis loses what it held while runs are between claim and end, and between end and ack. */
export async function redisPart(
  stage: Stage,
  { heir, holder }: Workers,
  stopped: Life | undefined,
  chosen: (cell: Cell) => boolean,
): Promise<void> {
  const [goingOn, copied] = [goingOnCells.filter(chosen), copiedCells.filter(chosen)];
  await Promise.all([...goingOn, ...copied].map((cell) => entered(stage, 'holder', cell)));
  if (goingOn.length + copied.length > 0 || stopped) await Promise.all(redisFaults.map(stage.loseRedis));
  await stopped?.worker.kill();
  const ended = ({ cell }: Cell) => {
    stage.sink.release(cell);
    return holder.until(`${cell}: ended`, verdictOf(cell));
  };
  await Promise.all([
    ...goingOn.map(ended),
    ...copied.map(async (cell) => {
      await stage.publish('heir', cell);
      await heir.until(`${cell.cell}: judged`, verdictOf(cell.cell));
      await ended(cell);
    }),
  ]);
}
