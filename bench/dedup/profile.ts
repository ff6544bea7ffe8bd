import { printOwnProfile } from '../measure/own-profile.ts';
import { openRedisLoad } from './redis-load.ts';

const warmUpMs = 2_000;

/** Where this process spends its time on new messages and on duplicates, with Redis as the store. */
export async function printProfiles(): Promise<void> {
  const load = await openRedisLoad({ timed: true, times: { settleMs: warmUpMs, measuredMs: 5_000 } });
  await printOwnProfile('New messages', load.first.ours);
  await printOwnProfile('Duplicates', load.duplicate.ours);
  await load.close();
}
