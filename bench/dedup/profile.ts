import { Session } from 'node:inspector/promises';
import { type CallFrame, functionOf, selfTimes } from '../measure/cpu-profile.ts';
import { printTable } from '../measure/figures.ts';
import { openRedisLoad } from './redis-load.ts';

const longestTable = 25;
const warmUpMs = 2_000;

/** Where this process spends its time on new messages and on duplicates, with Redis as the store. */
export async function printProfiles(): Promise<void> {
  const load = await openRedisLoad({ timed: true, times: { settleMs: warmUpMs, measuredMs: 5_000 } });
  for (const kind of ['first', 'duplicate'] as const) {
    const session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    const perSecond = await load[kind].ours();
    const { profile } = await session.post('Profiler.stop');
    session.disconnect();
    console.log(`\n${kind === 'first' ? 'New messages' : 'Duplicates'}: ${perSecond.toFixed(0)} a second while profiled`);
    printTable([['self', 'part'], ...selfTimes(profile, partOf)]);
    printTable([['self', 'function', 'where'], ...selfTimes(profile, functionOf).slice(0, longestTable)]);
  }
  await load.close();
}

function partOf({ functionName, url }: CallFrame): readonly string[] {
  if (functionName === '(garbage collector)') return ['garbage collection'];
  if (url.startsWith('node:')) return ['Node'];
  const own = /\/src\/(shared\/.*)$/.exec(url)?.[1];
  if (own) return [own];
  return [/^.*\/node_modules\/((@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? (url === '' ? 'native code' : 'the benchmark')];
}
