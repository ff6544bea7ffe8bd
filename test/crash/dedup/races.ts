import type { Book } from './book.ts';
import { type Cell, leaseSetups, raceCells } from './cells.ts';
import type { Workers } from './leases.ts';
import type { Stage } from './stage.ts';

const longestMs = 120_000;

export type Race = { readonly keys: number; readonly copies: number };

/** Copies of each message at once, on one subscription that four workers pull. */
export async function racePart(
  stage: Stage,
  workers: Workers,
  book: Book,
  { keys, copies }: Race,
  chosen: (cell: Cell) => boolean,
): Promise<string[]> {
  const cells = leaseSetups.flatMap((setup) => raceCells(setup, keys)).filter(chosen);
  const startMs = performance.now();
  await Promise.all(cells.map((cell) => stage.publish('race', cell, copies)));
  const left = await stage.backlog(longestMs);
  const tookMs = performance.now() - startMs;
  const said: string[] = [];
  for (const [setup, ofSetup] of Map.groupBy(cells, ({ setup }) => setup)) {
    const names = new Set(ofSetup.map(({ cell }) => cell));
    const verdicts = Object.values(workers).flatMap(({ lines }) => lines.filter((line) => line.said === 'verdict' && names.has(line.cell)));
    let made = 0;
    for (const cell of ofSetup) {
      const effects = stage.sink.made(cell.cell);
      made += effects;
      if (effects < 1 || left > 0) book.lost(cell, `${effects} effects, ${left} messages of all without an ack`);
      if (effects > 1) book.repeated(cell, `expected 1 effect of ${copies} copies, seen ${effects}`);
    }
    said.push(`${setup}: ${copies} copies of each of ${names.size} messages, ${verdicts.length} deliveries: ${made} effects`);
  }
  if (cells.length > 0) console.log(`${Math.round(tookMs)} ms of races on ${Object.keys(workers).length} workers`);
  return said;
}
