import { startOurs } from '../emulator/servers.ts';
import { printOwnProfile } from '../measure/own-profile.ts';
import type { Measure } from '../measure/rounds.ts';
import { type Addresses, slowFirestore } from './clients.ts';
import { openRelayLoad } from './relay-load.ts';
import { openSequenceLoad } from './sequencing.ts';
import { openStreamLoad } from './stream-load.ts';

/** `before` is no part of the profile. */
type Load = { readonly run: Measure; before?(): Promise<void>; close(): Promise<void> };

const loads: Readonly<Record<string, (addresses: Addresses) => Load | Promise<Load>>> = {
  'Numbering, one stream': async (addresses) => {
    const { perSecond, close } = await openSequenceLoad(addresses);
    return { run: () => perSecond(4_000), close };
  },
  'Relay, one pass over 64 streams': async (addresses) => {
    const { fill, pass, close } = await openRelayLoad(addresses);
    return { run: pass, before: fill, close };
  },
  '64 streams, handlers of 5 ms': (addresses) => {
    const { streams, close } = openStreamLoad(addresses);
    return { run: streams.many, close };
  },
  'One shuffled stream, a commit for each message': async (addresses) => {
    await slowFirestore(addresses, 10);
    const { shuffled, close } = openStreamLoad(addresses);
    return { run: shuffled.perMessage, close };
  },
  'One shuffled stream, coalesced': async (addresses) => {
    await slowFirestore(addresses, 10);
    const { shuffled, close } = openStreamLoad(addresses);
    return { run: shuffled.coalesced, close };
  },
};

/** Where our code spends its time under each load, after a round that warms it up. */
export async function printProfiles(): Promise<void> {
  for (const [name, open] of Object.entries(loads)) {
    const ours = await startOurs();
    const load = await open(ours.addresses);
    await load.before?.();
    await load.run();
    await load.before?.();
    await printOwnProfile(name, load.run);
    await load.close();
    await ours.stop();
  }
}
