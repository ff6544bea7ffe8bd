import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CallFrame, type CpuProfile, functionOf, selfTimes } from '../measure/cpu-profile.ts';
import { printTable } from '../measure/figures.ts';
import { openContendedCounter, openFirestoreLoad } from './firestore-load.ts';
import { openPubsubLoad } from './pubsub-load.ts';
import { type Addresses, startOurs } from './servers.ts';
import { openTasksLoad } from './tasks-load.ts';

const loads: Readonly<Record<string, (addresses: Addresses) => Promise<number>>> = {
  'Pub/Sub, publish to ack': async ({ pubsub }) => (await openPubsubLoad(pubsub, 100)).run(8_000),
  'Firestore, creates': ({ firestore }) => openFirestoreLoad(firestore).creates(8_000),
  'Firestore, transactions': ({ firestore }) => openFirestoreLoad(firestore).transactions(8_000),
  'Firestore, contended counter': async ({ firestore }) => (await openContendedCounter(firestore)).increments(8_000),
  'Cloud Tasks, create to 200': async ({ tasks }) => (await openTasksLoad(tasks)).pass(10_000),
};

const longestTable = 15;

/** Where our emulator spends its time under each load. */
export async function printProfiles(): Promise<void> {
  for (const [name, load] of Object.entries(loads)) {
    const folder = mkdtempSync(join(tmpdir(), 'bench-profile-'));
    const ours = await startOurs(['--cpu-prof', `--cpu-prof-dir=${folder}`]);
    const perSecond = await load(ours.addresses);
    await ours.stop();
    const [file = ''] = readdirSync(folder);
    const profile: CpuProfile = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    rmSync(folder, { recursive: true });
    console.log(`\n${name}: ${perSecond.toFixed(0)} a second while profiled`);
    printTable([['self', 'part'], ...selfTimes(profile, partOf)]);
    printTable([['self', 'function', 'where'], ...selfTimes(profile, functionOf).slice(0, longestTable)]);
  }
}

/** The code that protobufjs makes for each message type has no place of its own. */
function partOf({ functionName, url }: CallFrame): readonly string[] {
  if (functionName === '(garbage collector)') return ['garbage collection'];
  if (url.startsWith('node:')) return ['Node'];
  if (/\/dist\/src\//.test(url)) return ['the emulator'];
  const name = /^.*\/node_modules\/((@[^/]+\/)?[^/]+)/.exec(url)?.[1];
  if (name) return [/^(protobufjs|long|@protobufjs\/.*)$/.test(name) ? 'protobufjs' : name];
  return [/\$(encode|decode|fromObject|toObject)$/.test(functionName) ? 'protobufjs' : 'native code'];
}
