import { Session } from 'node:inspector/promises';
import { type CallFrame, functionOf, selfTimes } from './cpu-profile.ts';
import { printTable } from './figures.ts';
import type { Measure } from './rounds.ts';

const longestTable = 25;

/** Prints where this process spends its time while the load runs. */
export async function printOwnProfile(name: string, load: Measure): Promise<void> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.start');
  const perSecond = await load();
  const { profile } = await session.post('Profiler.stop');
  session.disconnect();
  console.log(`\n${name}: ${perSecond.toFixed(0)} a second while profiled`);
  printTable([['self', 'part'], ...selfTimes(profile, partOf)]);
  printTable([['self', 'function', 'where'], ...selfTimes(profile, functionOf).slice(0, longestTable)]);
}

function partOf({ functionName, url }: CallFrame): readonly string[] {
  if (functionName === '(garbage collector)') return ['garbage collection'];
  if (url.startsWith('node:')) return ['Node'];
  const own = /\/src\/(shared\/.*)$/.exec(url)?.[1];
  if (own) return [own];
  return [/^.*\/node_modules\/((@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? (url === '' ? 'native code' : 'the benchmark')];
}
