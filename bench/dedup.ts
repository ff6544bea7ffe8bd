import { parseArgs } from 'node:util';
import { firestoreRoundTrips, openFirestoreLoad } from './dedup/firestore-load.ts';
import { printProfiles } from './dedup/profile.ts';
import { openPullLoad } from './dedup/pull-load.ts';
import { openRedisLoad } from './dedup/redis-load.ts';
import { startOurs } from './emulator/servers.ts';
import { type Benchmark, type Figures, measureParts, median, type Target } from './measure/figures.ts';
import { inTurn, medianRatio } from './measure/rounds.ts';

const targets = {
  redisFirstRatioToFloor: { atLeast: 0.55 },
  redisDuplicateRatioToFloor: { atLeast: 0.5 },
  redisFirstRatioToPowertools: { atLeast: 1.5 },
  redisDuplicateRatioToPowertools: { atLeast: 2 },
  redisRoundTripsFirst: { atMost: 2 },
  redisRoundTripsDuplicate: { atMost: 1 },
  firestoreFirstRatioToFloor: { atLeast: 0.85 },
  firestoreRoundTripsFirst: { atMost: 2 },
  firestoreRoundTripsDuplicate: { atMost: 2 },
  pullRatioToBareClient: { atLeast: 0.85 },
} satisfies Record<string, Target>;

type Asked = { readonly repeats: number; readonly timed: boolean };

/** Each part starts its own processes and ends them. */
const parts: Readonly<Record<string, (asked: Asked) => Promise<Figures>>> = {
  async redis({ repeats, timed }) {
    const load = await openRedisLoad({ timed });
    const first = await inTurn('new messages a second', repeats, load.first);
    const duplicate = await inTurn('duplicates a second', repeats, load.duplicate);
    await load.close();
    return {
      redisFirstRatioToFloor: medianRatio(first.ours, first.floor),
      redisDuplicateRatioToFloor: medianRatio(duplicate.ours, duplicate.floor),
      redisFirstRatioToPowertools: medianRatio(first.ours, first.powertools),
      redisDuplicateRatioToPowertools: medianRatio(duplicate.ours, duplicate.powertools),
      redisRoundTripsFirst: load.roundTrips.first,
      redisRoundTripsDuplicate: load.roundTrips.duplicate,
      redisFloorPerSecond: median(first.floor),
      redisPowertoolsPerSecond: median(first.powertools),
    };
  },

  async firestore({ repeats }) {
    const roundTrips = await firestoreRoundTrips();
    const emulator = await startOurs();
    const load = await openFirestoreLoad(emulator.addresses.firestore);
    const first = await inTurn('new messages a second, Firestore', repeats, load.first);
    await load.close();
    await emulator.stop();
    return {
      firestoreFirstRatioToFloor: medianRatio(first.ours, first.floor),
      firestoreRoundTripsFirst: roundTrips.first,
      firestoreRoundTripsDuplicate: roundTrips.duplicate,
    };
  },

  async pull({ repeats }) {
    const emulator = await startOurs();
    const load = openPullLoad(emulator.addresses.pubsub);
    const { ours, bare } = await inTurn('messages of a backlog a second', repeats, load.backlog);
    await load.close();
    await emulator.stop();
    return { pullRatioToBareClient: medianRatio(ours, bare) };
  },
};

/** What our code costs a message, beside the bare calls and beside another library. */
export const benchmark: Benchmark = async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', multiple: true, default: Object.keys(parts) },
      repeats: { type: 'string', default: '5' },
      untimed: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
    },
  });
  if (values.profile) return void (await printProfiles());
  return measureParts(parts, values.only, { repeats: Number(values.repeats), timed: !values.untimed }, targets);
};
