import { setTimeout as pause } from 'node:timers/promises';
import { fillBacklog, openPubsubLoad } from './pubsub-load.ts';
import { type Ours, startOurs } from './servers.ts';

/** Resident memory with 100,000 messages of 1 KiB that nobody has acked. */
export async function rssMb100k(): Promise<number> {
  const ours = await startOurs();
  await fillBacklog(ours.addresses.pubsub, 100_000, 1_024);
  const rss = ours.rssMb();
  await ours.stop();
  return rss;
}

const restMs = 20_000;
const million = 1_000_000;

/** Resident memory after one million messages went through one subscription, over that after the first 10,000. */
export async function millionRssRatio(): Promise<number> {
  const ours = await startOurs();
  const load = await openPubsubLoad(ours.addresses.pubsub, 100);
  await load.pass(10_000);
  const before = await atRest(ours);
  await load.pass(million);
  const busy = ours.rssMb();
  const after = await atRest(ours);
  console.log(`one million messages: ${before.toFixed(0)} MiB before, ${busy.toFixed(0)} at their end, ${after.toFixed(0)} at rest`);
  load.close();
  await ours.stop();
  return after / before;
}

/** V8 gives memory back some time after the last garbage, and nobody can tell when it has. */
async function atRest(ours: Ours): Promise<number> {
  await pause(restMs);
  return ours.rssMb();
}
