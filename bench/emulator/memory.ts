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
const warmUp = 10_000;
/** A longer one, printed beside the figure: by then every buffer that a full load needs has been there once. */
const longWarmUp = 100_000;
const million = 1_000_000;

/** Resident memory at rest after one million messages went through one subscription, over that after the first 10,000. */
export async function millionRssRatio(): Promise<number> {
  const ours = await startOurs();
  const load = await openPubsubLoad(ours.addresses.pubsub, 100);
  const restedMb: number[] = [];
  let passed = 0;
  for (const messages of [warmUp, longWarmUp, million]) {
    await load.pass(messages - passed);
    passed = messages;
    const busyMb = ours.rssMb();
    restedMb.push(await rssAtRest(ours));
    console.log(`after ${messages} messages: ${busyMb.toFixed(0)} MiB, at rest ${restedMb.at(-1)?.toFixed(0)}`);
  }
  load.close();
  await ours.stop();
  return (restedMb.at(-1) ?? Number.NaN) / (restedMb[0] ?? Number.NaN);
}

/** The emulator collects once it is idle, some seconds after the last message. */
export async function rssAtRest(ours: Ours): Promise<number> {
  await pause(restMs);
  return ours.rssMb();
}
