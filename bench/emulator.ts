import { parseArgs } from 'node:util';
import { findGoogleEmulators, type GoogleService, startGoogleEmulator } from '../src/cli/google-emulators.ts';
import { openContendedCounter, openFirestoreLoad } from './emulator/firestore-load.ts';
import { millionRssRatio, rssMb100k } from './emulator/memory.ts';
import { printProfiles } from './emulator/profile.ts';
import { openPubsubLoad } from './emulator/pubsub-load.ts';
import { readyMs } from './emulator/ready.ts';
import { startOurs } from './emulator/servers.ts';
import { openTasksLoad } from './emulator/tasks-load.ts';
import { type Benchmark, type Figures, measureParts, type Target } from './measure/figures.ts';
import { sideBySide } from './measure/rounds.ts';

const targets = {
  readyMs: { atMost: 700 },
  pubsubPerSecond: { atLeast: 15_000 },
  pubsubRatioToOfficial: { atLeast: 3 },
  firestoreCreateRatioToOfficial: { atLeast: 1 },
  firestoreTransactionRatioToOfficial: { atLeast: 1.3 },
  contendedCounterRatioToOfficial: { atLeast: 3 },
  rssMb100k: { atMost: 400 },
  tasksPerSecond: { atLeast: 800 },
  millionRssRatio: { atMost: 1.2 },
} satisfies Record<string, Target>;

/** Each part starts its own processes and ends them. */
const parts: Readonly<Record<string, (repeats: number) => Promise<Figures>>> = {
  ready: async (repeats) => ({ readyMs: (await sideBySide('readyMs', repeats, { ours: readyMs })).ours }),

  pubsub: (repeats) =>
    besideGoogle('pubsub', async (ours, official) => {
      const load = await openPubsubLoad(ours, 100);
      const officialLoad = official === undefined ? undefined : await openPubsubLoad(official, 100);
      const compared = await sideBySide('messages a second', repeats, {
        ours: () => load.run(4_000),
        official: officialLoad && (() => officialLoad.run(4_000)),
      });
      load.close();
      officialLoad?.close();
      return { pubsubPerSecond: compared.ours, pubsubRatioToOfficial: compared.ratio };
    }),

  firestore: (repeats) =>
    besideGoogle('firestore', async (ours, official) => {
      const load = openFirestoreLoad(ours);
      const officialLoad = official === undefined ? undefined : openFirestoreLoad(official);
      const creates = await sideBySide('creates a second', repeats, {
        ours: () => load.creates(3_000),
        official: officialLoad && (() => officialLoad.creates(3_000)),
      });
      const transactions = await sideBySide('transactions a second', repeats, {
        ours: () => load.transactions(3_000),
        official: officialLoad && (() => officialLoad.transactions(3_000)),
      });
      load.close();
      officialLoad?.close();
      return { firestoreCreateRatioToOfficial: creates.ratio, firestoreTransactionRatioToOfficial: transactions.ratio };
    }),

  contended: (repeats) =>
    besideGoogle('firestore', async (ours, official) => {
      const counter = await openContendedCounter(ours);
      const officialCounter = official === undefined ? undefined : await openContendedCounter(official);
      const { ratio } = await sideBySide('contended increments a second', repeats, {
        ours: () => counter.increments(5_000),
        official: officialCounter && (() => officialCounter.increments(5_000)),
      });
      await counter.close();
      await officialCounter?.close();
      return { contendedCounterRatioToOfficial: ratio };
    }),

  memory: async (repeats) => ({ rssMb100k: (await sideBySide('rssMb100k', repeats, { ours: rssMb100k })).ours }),

  tasks: async (repeats) => {
    const ours = await startOurs();
    const load = await openTasksLoad(ours.addresses.tasks);
    const { ours: tasksPerSecond } = await sideBySide('tasks a second', repeats, { ours: () => load.pass(4_000) });
    await load.close();
    await ours.stop();
    return { tasksPerSecond };
  },

  million: async () => ({ millionRssRatio: await millionRssRatio() }),
};

async function besideGoogle(
  service: GoogleService,
  measure: (ours: string, official: string | undefined) => Promise<Figures>,
): Promise<Figures> {
  const installed = findGoogleEmulators()[service];
  if ('missing' in installed) console.log(`The ratios to Google's ${service} emulator are not measured: ${installed.missing}.`);
  const official = 'missing' in installed ? undefined : await startGoogleEmulator(service, installed);
  const ours = await startOurs();
  try {
    return await measure(ours.addresses[service], official?.address);
  } finally {
    await ours.stop();
    await official?.kill();
  }
}

/** Speed and memory of our emulator, beside Google's where they are installed. */
export const benchmark: Benchmark = async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', multiple: true, default: Object.keys(parts) },
      repeats: { type: 'string', default: '5' },
      million: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
    },
  });
  if (values.profile) return void (await printProfiles());
  return measureParts(parts, values.million ? ['million'] : values.only, Number(values.repeats), targets);
};
