import { findGoogleEmulators, startGoogleEmulator } from '../src/cli/google-emulators.ts';
import { startOurs } from './emulator/servers.ts';
import { openBlockedLoad } from './fifo/blocked-load.ts';
import { type Addresses, slowFirestore } from './fifo/clients.ts';
import { openContention } from './fifo/contention.ts';
import { printProfiles } from './fifo/profile.ts';
import { openRelayLoad } from './fifo/relay-load.ts';
import { openSequenceLoad } from './fifo/sequencing.ts';
import { openStreamLoad } from './fifo/stream-load.ts';
import { benchmarkOf, type Figures, median, type Target } from './measure/figures.ts';
import { inTurn, medianRatio } from './measure/rounds.ts';

const googleFirestore = findGoogleEmulators().firestore;

const targets = {
  sequencePerSecond: { atLeast: 3_000 },
  sequenceRatioToPublished: { atLeast: 'missing' in googleFirestore ? 20 : 300 },
  sequenceRatioToPublishedOurs: { atLeast: 20 },
  endToEndRatioPerMessage: { atLeast: 5 },
  endToEndRatioCoalesced: { atLeast: 30 },
  streams64Ratio: { atLeast: 8 },
  relayPerSecond: { atLeast: 2_000 },
  blockedStreamP99Ratio: { atMost: 1.2 },
} satisfies Record<string, Target>;

type Part = (repeats: number) => Promise<Figures>;

/** Each part starts its own processes and ends them. */
const parts: Readonly<Record<string, Part>> = {
  sequence: withOurs(async (addresses, repeats) => {
    const load = await openSequenceLoad(addresses);
    await warmed(() => load.perSecond(2_000));
    const { ours } = await inTurn('messages numbered a second', repeats, { ours: () => load.perSecond(2_000) });
    await load.close();
    return { sequencePerSecond: median(ours) };
  }),

  contended: withOurs(async (addresses, repeats) => {
    const measure = async (name: string, firestore: string, publishedMs: number) => {
      const contention = await openContention({ ...addresses, firestore }, { ours: 4_000, published: publishedMs });
      await warmed(contention.publish.ours);
      const { ours, published } = await inTurn(`messages of 8 publishers a second, ${name}`, repeats, contention.publish);
      await contention.close();
      return { perSecond: median(published), ratio: medianRatio(ours, published) };
    };
    const onOurs = await measure('our emulator', addresses.firestore, 3_000);
    const isMissing = 'missing' in googleFirestore;
    if (isMissing) console.log(`The contended publishers are measured on our emulator alone: ${googleFirestore.missing}.`);
    const google = isMissing ? undefined : await startGoogleEmulator('firestore', googleFirestore);
    const official = google && (await measure("Google's emulator", google.address, 4_000));
    await google?.kill();
    return {
      publishedPerSecond: (official ?? onOurs).perSecond,
      sequenceRatioToPublished: (official ?? onOurs).ratio,
      sequenceRatioToPublishedOurs: onOurs.ratio,
    };
  }),

  endToEnd: withOurs(async (addresses, repeats) => {
    const load = openStreamLoad(addresses);
    await slowFirestore(addresses, 10);
    const rates = await inTurn('messages of one shuffled stream a second', repeats, load.shuffled);
    await load.close();
    return {
      endToEndRatioPerMessage: medianRatio(rates.perMessage, rates.published),
      endToEndRatioCoalesced: medianRatio(rates.coalesced, rates.published),
    };
  }),

  streams: withOurs(async (addresses, repeats) => {
    const load = openStreamLoad(addresses);
    await warmed(load.streams.many);
    const { one, many } = await inTurn('messages of one stream and of 64 a second', repeats, load.streams);
    await load.close();
    return { streams64Ratio: medianRatio(many, one) };
  }),

  relay: withOurs(async (addresses, repeats) => {
    const load = await openRelayLoad(addresses);
    await warmed(() => load.fill().then(load.pass));
    const { ours } = await inTurn('entries relayed a second', repeats, { ours: () => load.fill().then(load.pass) });
    await load.close();
    return { relayPerSecond: median(ours) };
  }),

  blocked: withOurs(async (addresses, repeats) => {
    const load = openBlockedLoad(addresses);
    const { none, blocked } = await inTurn('ms of the 99th of 100 messages of other streams', repeats, load.latencyP99);
    await load.close();
    return { blockedStreamP99Ratio: medianRatio(blocked, none) };
  }),
};

/** Rounds of a second are over before V8 has made its code for them. */
async function warmed(round: () => Promise<unknown>): Promise<void> {
  for (let rounds = 0; rounds < 4; rounds++) await round();
}

function withOurs(measure: (addresses: Addresses, repeats: number) => Promise<Figures>): Part {
  return async (repeats) => {
    const ours = await startOurs();
    try {
      return await measure(ours.addresses, repeats);
    } finally {
      await ours.stop();
    }
  };
}

/** Numbers, streams and the relay, beside the pattern that is published for them: a counter in a transaction, nack when early. */
export const benchmark = benchmarkOf(parts, targets, printProfiles);
