import { invalidArgument } from '../grpc.ts';
import type { Journal } from '../journal.ts';

/** Ids that never come twice, after a restart neither. */
export type Serials = { nextMessageId(): string; nextAckId(): string };

/** Ids are unique over all topics; the service promises it for one. */
const firstMessageId = 10_000_000_000;

/** Refuses what was never an ack id, which a stale one was. */
export function checkMade(field: string, ackIds: readonly string[]): void {
  const other = ackIds.find((ackId) => !/^\d+-\d+$/.test(ackId));
  if (other !== undefined) throw invalidArgument(`${field} holds "${other}", which is no ack id of this service`);
}

type Counts = { starts: number; messages: number };

export function createSerials(journal: Journal): Serials {
  const kind = 'pubsub/serials';
  const [saved] = journal.load<Counts>(kind);
  const counts: Counts = saved?.[1] ?? { starts: 0, messages: firstMessageId };
  let acks = 0;
  // No lease survives a restart: the number of the start tells its ack ids from all before.
  counts.starts += 1;
  journal.put(kind, 'counts', counts);
  return {
    nextMessageId() {
      counts.messages += 1;
      journal.put(kind, 'counts', counts);
      return String(counts.messages);
    },
    nextAckId: () => `${counts.starts}-${++acks}`,
  };
}
