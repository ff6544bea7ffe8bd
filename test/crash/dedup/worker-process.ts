import { type Worker as AnyWorker, startWorkerProcess } from '../worker-process.ts';
import type { Line, WorkerPlan } from './plan.ts';

export type Worker = AnyWorker<Line>;

export const startWorker = (name: string, plan: WorkerPlan, env: Readonly<Record<string, string>>): Promise<Worker> =>
  startWorkerProcess({ name, script: new URL('./worker.ts', import.meta.url), plan, env });

/** That a worker has told what becomes of a delivery of the cell. */
export const verdictOf =
  (cell: string, kind?: 'ack' | 'nack') =>
  (line: Line): boolean =>
    line.said === 'verdict' && line.cell === cell && (kind === undefined || line.kind === kind);
