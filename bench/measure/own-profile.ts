import { Session } from 'node:inspector/promises';
import { performance } from 'node:perf_hooks';
import { type CallFrame, functionOf, selfTimes } from './cpu-profile.ts';
import { printTable } from './figures.ts';
import type { Measure } from './rounds.ts';

const longestTable = 25;

/** Prints where this process spends its time while the load runs; where it is hardly busy, it waits for answers. */
export async function printOwnProfile(name: string, load: Measure): Promise<void> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.start');
  const before = performance.eventLoopUtilization();
  const perSecond = await load();
  const busy = performance.eventLoopUtilization(before).utilization;
  const { profile } = await session.post('Profiler.stop');
  session.disconnect();
  console.log(`\n${name}: ${perSecond.toFixed(0)} a second while profiled, ${Math.round(100 * busy)} % of the time busy`);
  printTable([['self', 'part'], ...selfTimes(profile, partOf)]);
  printTable([['self', 'function', 'where'], ...selfTimes(profile, functionOf).slice(0, longestTable)]);
}

function partOf({ functionName, url }: CallFrame): readonly string[] {
  if (functionName === '(garbage collector)') return ['garbage collection'];
  if (url === 'node:inspector') return ['the profiler'];
  if (url.startsWith('node:')) return ['Node'];
  const own = /\/src\/(shared\/.*)$/.exec(url)?.[1];
  if (own) return [own];
  return [/^.*\/node_modules\/((@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? (url === '' ? 'native code' : 'the benchmark')];
}
