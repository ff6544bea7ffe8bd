import type { Firestore } from '@google-cloud/firestore';
import { firestoreRecordStore } from '../../../src/shared/adapters/firestore.ts';
import { firestoreStreamStore } from '../../../src/shared/adapters/firestore-streams.ts';
import { system } from '../../../src/shared/adapters/system.ts';
import type { RelayLease } from '../../../src/shared/outbox/decide.ts';
import { createRelay } from '../../../src/shared/outbox/relay.ts';
import { createSequencer, type Sequenced, type Sequencer } from '../../../src/shared/outbox/sequencer.ts';
import type { Publisher } from '../../../src/shared/ports.ts';
import { silentLog } from '../../../src/testing/doubles.ts';
import type { Walk } from '../steps.ts';
import { unprotectedLeases, unprotectedStreams } from './controls.ts';
import { attributesOf, keyOf, type Outbox, plainPart, type SenderCell } from './plan.ts';

export type SendingParts = { readonly db: Firestore; readonly publisher: Publisher };

/** A call may wait until its process is killed. */
const storeTimeoutMs = 60_000;
/** So soon a relay takes what a publisher has left. */
export const handoffMs = 2_000;

const streamsOf = ({ db }: SendingParts, { prefix }: Outbox) => firestoreStreamStore(db, system.clock, prefix);

export function sequencerOf(parts: SendingParts, outbox: Outbox, through: Walk['through'] = (port) => port): Sequencer {
  const streams = unprotectedStreams(through(streamsOf(parts, outbox)), outbox.without);
  const options = { handoffMs, storeTimeoutMs };
  return createSequencer({ streams, publisher: through(parts.publisher), system, log: silentLog, options });
}

export function relayOf(
  parts: SendingParts,
  outbox: Outbox,
  leaseMs: number,
  streams = streamsOf(parts, outbox),
  through: Walk['through'] = (port) => port,
): ReturnType<typeof createRelay> {
  const leases = firestoreRecordStore<RelayLease>(parts.db, system.clock, `${outbox.prefix}ptk-relays`);
  return createRelay({
    streams: through(streams),
    leases: unprotectedLeases(through(leases), outbox.without),
    publisher: through(parts.publisher),
    system,
    log: silentLog,
    options: { relayLeaseMs: leaseMs, storeTimeoutMs },
  });
}

/** One pass of a relay that sees no other stream. */
export async function relayCell(parts: SendingParts, cell: SenderCell, leaseMs: number, walk: Walk): Promise<void> {
  const streams = streamsOf(parts, cell);
  const own: typeof streams = {
    ...streams,
    async *dueStreams(nowMs) {
      for await (const stream of streams.dueStreams(nowMs)) if (stream === cell.cell) yield stream;
    },
  };
  await relayOf(parts, cell, leaseMs, own, walk.through)();
}

/** What the consumer gets of a sequenced message: `name` is all of it, and its number is not known yet. */
export function draftOf({ cell, topic, consumer, without }: SenderCell, name: string) {
  const task = { cell, stop: 'nowhere', consumer, without, count: 0, isTogether: true };
  const attributes = attributesOf(task, plainPart(0));
  const { 'ptk-key': _, 'ptk-stream': __, 'ptk-seq': ___, 'ptk-epoch': ____, ...own } = attributes;
  return { stream: cell, topic, key: name, data: Buffer.from(name), attributes: own };
}

/** Of one cell: a message alone, whose counter is not known, then three at once. */
export const groups = [[1], [2, 3, 4]] as const;

export async function publishGroups(
  parts: SendingParts,
  cell: SenderCell,
  walk: Walk,
  numbered: (answer: Sequenced) => void,
): Promise<void> {
  const sequencer = sequencerOf(parts, cell, walk.through);
  for (const group of groups) {
    const told = group.map(async (index) => numbered(await sequencer.publish(draftOf(cell, keyOf(cell.cell, index)))));
    await Promise.all(told);
    await walk.step('answered');
    await sequencer.flush();
  }
}
