import { system } from '../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import type { Message } from '../../src/shared/message.ts';
import type { RecordStore, VerdictHandler } from '../../src/shared/ports.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';

/** How many messages are handled at once. */
export const lanes = 64;
export const payload = Buffer.alloc(100, 'x');

let serial = 0;
/** One that no store has seen. */
export const nextMessage = (): Message => testMessage({ messageId: `${10_000_000 + ++serial}`, data: payload });

/** Its handler does nothing: what is measured is all that is done around it. */
export const consumerOn = (store: RecordStore<DedupRecord>): VerdictHandler =>
  createDedup({ store, system, log: silentLog, consumer: 'bench' })(async () => undefined);

const { signal } = new AbortController();

/** Hands over a delivery; anything but an ack for the reason that the round is about makes its figure worthless. */
export function deliver(consumer: VerdictHandler, message: Message, expected: 'processed' | 'duplicate'): Promise<void> {
  return consumer(message, { signal }).then(({ kind, reason }) => {
    if (reason !== expected) throw new Error(`a message that should be ${expected} ended as ${kind} (${reason})`);
  });
}
