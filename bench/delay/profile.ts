import { freePort } from '../../src/cli/demo/processes.ts';
import { busyShare, type CallFrame, type CpuProfile, functionOf, selfTimes } from '../measure/cpu-profile.ts';
import { printTable } from '../measure/figures.ts';
import { inspected } from '../measure/inspected.ts';
import type { Measure } from '../measure/rounds.ts';
import { openFlow } from './flow.ts';
import { type Process, sides, startStack } from './stack.ts';

const longestTable = 30;
const warmUps = 2;

/** Where each process spends its time while messages become tasks, and while tasks become messages. */
export async function printProfiles(): Promise<void> {
  const ports = { plain: await freePort(), ledger: await freePort(), appEngine: await freePort(), emulator: await freePort() };
  const stack = await startStack(ports);
  const flow = openFlow(stack);
  const profiled = async (name: string, load: Measure, processes: readonly Process[]) => {
    const profilers = await Promise.all(processes.map((process) => inspected(ports[process])));
    await Promise.all(profilers.map((profiler) => profiler.start()));
    const perSecond = await load();
    const profiles = await Promise.all(profilers.map((profiler) => profiler.stop()));
    for (const profiler of profilers) profiler.close();
    for (const [index, profile] of profiles.entries()) print(`${name}, ${processes[index]}, ${perSecond.toFixed(0)} a second`, profile);
  };
  for (const side of sides) {
    for (let round = 0; round < warmUps; round++) await flow.enqueue[side]().then(flow.release);
    await profiled(`Enqueue ${side}`, flow.enqueue[side], [side, 'emulator']);
    await profiled(`Release ${side}`, flow.release, ['appEngine', 'emulator']);
  }
  await stack.stop();
}

function print(name: string, profile: CpuProfile): void {
  console.log(`\n${name}: busy for ${Math.round(100 * busyShare(profile))} % of the time`);
  printTable([['self', 'part'], ...selfTimes(profile, partOf)]);
  printTable([['self', 'function', 'where'], ...selfTimes(profile, functionOf).slice(0, longestTable)]);
}

function partOf({ functionName, url }: CallFrame): readonly string[] {
  if (functionName === '(garbage collector)') return ['garbage collection'];
  if (url.startsWith('node:')) return ['Node'];
  if (/\/dist\/deploy\//.test(url)) return ['the deployable'];
  if (/\/dist\/src\//.test(url)) return ['the emulator'];
  return [/^.*\/node_modules\/((@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? 'native code'];
}
