import { fileURLToPath } from 'node:url';
import { run } from '../../../src/cli/demo/processes.ts';
import type { Line, WorkerPlan } from './plan.ts';

export type Worker = {
  readonly name: string;
  readonly pushUrl: string;
  readonly lines: readonly Line[];
  /** Resolves once so many lines of it fit, at once where they have been said already. */
  until(what: string, fits: (line: Line) => boolean, count?: number): Promise<void>;
  /** As `kill -STOP` and `kill -CONT`. */
  pause(): void;
  resume(): void;
  /** As `kill -9`. */
  kill(): Promise<void>;
};

const script = fileURLToPath(new URL('./worker.ts', import.meta.url));
const longestWaitMs = 90_000;

export async function startWorker(plan: WorkerPlan, env: Readonly<Record<string, string>>): Promise<Worker> {
  const lines: Line[] = [];
  const waiting = new Set<() => void>();
  let [pid, pushUrl] = [0, ''];
  const until: Worker['until'] = (what, fits, count = 1) =>
    new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(timer);
        waiting.delete(look);
        settle();
      };
      const failed = (reason: string) => end(() => reject(new Error(`worker ${plan.name}: ${reason}`)));
      const look = () => {
        const failure = lines.find((line) => line.said === 'failed');
        if (failure) failed(failure.reason);
        else if (lines.filter(fits).length >= count) end(resolve);
      };
      const seen = () => `${what}: ${lines.filter(fits).length} of ${count} within ${longestWaitMs} ms`;
      const timer = setTimeout(() => failed(seen()), longestWaitMs);
      waiting.add(look);
      look();
    });
  const { kill } = await run({
    name: `worker ${plan.name}`,
    script,
    args: [JSON.stringify(plan)],
    env,
    untilReady: () => until('ready', ({ said }) => said === 'ready'),
    onLine: (text) => {
      const line: Line = JSON.parse(text);
      if (line.said === 'ready') ({ pid, pushUrl } = line);
      lines.push(line);
      for (const look of waiting) look();
    },
  });
  return {
    name: plan.name,
    pushUrl,
    lines,
    until,
    pause: () => void process.kill(pid, 'SIGSTOP'),
    resume: () => void process.kill(pid, 'SIGCONT'),
    kill,
  };
}
