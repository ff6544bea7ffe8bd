import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export type Addresses = { readonly pubsub: string; readonly firestore: string; readonly tasks: string };

export type Ours = {
  readonly addresses: Addresses;
  /** Resident memory of the process, in MiB. */
  rssMb(): number;
  /** As a user stops it: it ends by itself, and so writes its profile. */
  stop(): Promise<void>;
};

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** What it says where nothing is wrong, the second and third of them under a profiler. */
const expectedLine = /^(faults: seed|Debugger attached|Waiting for the debugger)/;

/** The built command, as a user has it. */
const command = fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url));

/** Starts our emulator on free ports as a process of its own; `nodeArgs` for a profile, `flags` of the command. */
export async function startOurs(nodeArgs: readonly string[] = [], flags: readonly string[] = []): Promise<Ours> {
  if (!existsSync(command)) throw new Error('dist/ is missing; npm run build makes it');
  const ports = ['--pubsub-port', '0', '--firestore-port', '0', '--tasks-port', '0'];
  const args = [...nodeArgs, command, 'emulator', ...ports, ...flags, '--json'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  createInterface({ input: child.stderr }).on('line', (line) => expectedLine.test(line) || console.error(line));
  running.add(child);
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const ready = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', resolve);
    child.once('exit', (code, signal) => reject(new Error(`the emulator ended with ${code ?? signal} before it was ready`)));
  });
  const addresses: Addresses = JSON.parse(await ready);
  return {
    addresses,
    rssMb: () => Number(execFileSync('ps', ['-o', 'rss=', '-p', String(child.pid)], { encoding: 'utf8' })) / 1_024,
    async stop() {
      child.kill('SIGTERM');
      await ended;
      running.delete(child);
    },
  };
}
