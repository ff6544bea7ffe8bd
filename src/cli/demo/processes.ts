import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';

export type Running = {
  readonly name: string;
  /** As `kill -9`; resolves once the process is gone. */
  kill(): Promise<void>;
  /** Starts the same process again on the same port. */
  restart(): Promise<void>;
};

export type ProgramPlan = {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env: Readonly<Record<string, string>>;
  /** Resolves once it takes requests. */
  readonly untilReady: (firstLine: Promise<string>) => Promise<void>;
  readonly onLine?: (line: string) => void;
};

export type ProcessPlan = Omit<ProgramPlan, 'command' | 'args'> & { readonly script: string; readonly args?: readonly string[] };

/** Nothing outlives this process, however it ends. */
const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** Runs a script with this Node as a process of its own. */
export const run = ({ script, args = [], ...plan }: ProcessPlan): Promise<Running> =>
  runProgram({ ...plan, command: process.execPath, args: [script, ...args] });

/** Runs a program as a process of its own. */
export async function runProgram(plan: ProgramPlan): Promise<Running> {
  let child: ChildProcess;
  let stopping = false;
  const start = async () => {
    stopping = false;
    const started = spawn(plan.command, plan.args, {
      cwd: plan.cwd,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, METADATA_SERVER_DETECTION: 'none', ...plan.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child = started;
    children.add(started);
    started.once('exit', () => children.delete(started));
    let errors = '';
    started.stderr.on('data', (chunk: Buffer) => {
      errors = (errors + chunk.toString()).slice(-2_000);
    });
    const lines = createInterface({ input: started.stdout });
    const firstLine = new Promise<string>((resolve) => lines.once('line', resolve));
    if (plan.onLine) lines.on('line', plan.onLine);
    const died = new Promise<never>((_, reject) => {
      started.once('exit', (code, signal) => {
        if (!stopping) reject(new Error(`${plan.name} ended with ${code ?? signal}: ${errors.trim()}`));
      });
    });
    died.catch(() => {});
    try {
      await Promise.race([plan.untilReady(firstLine), died]);
    } catch (error) {
      started.kill('SIGKILL');
      throw error;
    }
  };
  const kill = () =>
    new Promise<void>((resolve) => {
      stopping = true;
      if (child.exitCode !== null || child.signalCode !== null) return resolve();
      child.once('exit', () => resolve());
      child.kill('SIGKILL');
    });
  await start();
  return { name: plan.name, kill, restart: start };
}

/** A port that was free a moment ago: the functions framework takes no port 0. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address ? address.port : 0;
}

/** Asks until anything answers, whatever it answers. */
export async function untilAnswers(url: string, timeoutMs = 60_000): Promise<void> {
  const untilMs = performance.now() + timeoutMs;
  for (;;) {
    try {
      const response = await fetch(url);
      await response.body?.cancel();
      return;
    } catch (error) {
      if (performance.now() > untilMs) throw new Error(`${url} gave no answer within ${timeoutMs} ms`, { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
