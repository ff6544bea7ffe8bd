import { setTimeout as pause } from 'node:timers/promises';
import { type Cell, processOf } from './cells.ts';
import { type LateWrite, leases } from './plan.ts';
import type { Stage } from './stage.ts';
import type { Worker } from './worker-process.ts';

/** First lives: workers that stop with their messages. */
export type Life = { readonly topic: string; readonly worker: Worker };

/** So many processes start at once. */
const lanes = 3;

/** A worker that has stopped with each of the cells. */
export async function stoppedLife(stage: Stage, topic: string, cells: readonly Cell[]): Promise<Life> {
  await stage.open(topic);
  await Promise.all(cells.map((cell) => stage.publish(topic, cell)));
  const keepsAcks = cells.some(({ stop }) => stop === 'ack called');
  const worker = await stage.start(topic, { subscriptions: [topic], stops: true, keepsAcks });
  await worker.until('stopped with all cells', ({ said }) => said === 'stopped', cells.length);
  return { topic, worker };
}

/** Kills each process a moment of the seed after all of its cells have stopped; its topic is left behind. */
export async function killedLives(stage: Stage, cells: readonly Cell[], short: boolean, random: () => number): Promise<Life[]> {
  const groups = [...Map.groupBy(cells, (cell) => processOf(cell, short))];
  const lives: Life[] = [];
  const lane = async () => {
    for (let group = groups.pop(); group; group = groups.pop()) {
      const [name, ofProcess] = group;
      const life = await stoppedLife(stage, name.replaceAll(' ', '-'), ofProcess);
      await pause((random() * leases.short) / 3);
      await life.worker.kill();
      lives.push(life);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return lives;
}

/** What the dead have sent and no store has received yet. */
export function lateWrites(lives: readonly Life[]): Map<string, LateWrite> {
  const lines = lives.flatMap(({ worker }) => worker.lines);
  return new Map(lines.flatMap((line) => (line.said === 'stopped' && line.write ? [[line.cell, line.write]] : [])));
}
