import { fileURLToPath } from 'node:url';
import { run } from '../../src/cli/demo/processes.ts';

/** A process of a crash test, which tells what it does by lines of JSON: at least that it is ready, with its pid, or what went wrong. */
export type Worker<Line> = {
  readonly name: string;
  readonly lines: readonly Line[];
  /** Resolves once so many lines of it fit, at once where they have been said already. */
  until(what: string, fits: (line: Line) => boolean, count?: number): Promise<void>;
  /** As `kill -STOP` and `kill -CONT`. */
  pause(): void;
  resume(): void;
  /** As `kill -9`. */
  kill(): Promise<void>;
};

type Started = { readonly name: string; readonly script: URL; readonly plan: object; readonly env: Readonly<Record<string, string>> };
type Said = { readonly said: string; readonly pid?: number; readonly reason?: string };

const longestWaitMs = 90_000;

export async function startWorkerProcess<Line extends Said>({ name, script, plan, env }: Started): Promise<Worker<Line>> {
  const lines: Line[] = [];
  const waiting = new Set<() => void>();
  let pid = 0;
  const until: Worker<Line>['until'] = (what, fits, count = 1) =>
    new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(timer);
        waiting.delete(look);
        settle();
      };
      const failed = (reason: string) => end(() => reject(new Error(`worker ${name}: ${reason}`)));
      const look = () => {
        const failure = lines.find((line) => line.said === 'failed');
        if (failure) failed(failure.reason ?? 'failed');
        else if (lines.filter(fits).length >= count) end(resolve);
      };
      const seen = () => `${what}: ${lines.filter(fits).length} of ${count} within ${longestWaitMs} ms`;
      const timer = setTimeout(() => failed(seen()), longestWaitMs);
      waiting.add(look);
      look();
    });
  const { kill } = await run({
    name: `worker ${name}`,
    script: fileURLToPath(script),
    args: [JSON.stringify(plan)],
    env,
    untilReady: () => until('ready', ({ said }) => said === 'ready'),
    onLine: (text) => {
      const line: Line = JSON.parse(text);
      if (line.said === 'ready') pid = line.pid ?? 0;
      lines.push(line);
      for (const look of waiting) look();
    },
  });
  return {
    name,
    lines,
    until,
    pause: () => void process.kill(pid, 'SIGSTOP'),
    resume: () => void process.kill(pid, 'SIGCONT'),
    kill,
  };
}
