import { type Worker as AnyWorker, startWorkerProcess } from '../worker-process.ts';
import type { Line, WorkerPlan } from './plan.ts';

export type Worker = AnyWorker<Line> & { readonly url: string };

export async function startWorker(plan: WorkerPlan, env: Readonly<Record<string, string>>): Promise<Worker> {
  const worker = await startWorkerProcess<Line>({ name: plan.name, script: new URL('./worker.ts', import.meta.url), plan, env });
  const ready = worker.lines.find((line) => line.said === 'ready');
  return { ...worker, url: ready?.said === 'ready' ? ready.url : '' };
}
