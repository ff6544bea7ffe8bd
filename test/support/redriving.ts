import { type RedriveParts, redrive } from '../../src/cli/redrive/redriving.ts';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import type { DedupRecord, Redrive } from '../../src/shared/dedup/decide.ts';
import { createDedup, type DedupParts } from '../../src/shared/dedup/dedup.ts';
import type { Message, OutgoingMessage } from '../../src/shared/message.ts';
import { documentId, hash } from '../../src/shared/names.ts';
import type { RecordStore } from '../../src/shared/ports.ts';
import { deadLetterTopic } from '../../src/shared/transports/dead-letters.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { silentStore } from './faulty-store.ts';
import { manualSystem } from './manual-system.ts';
import { memoryLetters } from './memory-letters.ts';
import { recordingPublisher } from './recording-publisher.ts';

export const context = () => ({ signal: new AbortController().signal });
export const recordId = documentId('c', hash('k'));

export type RedrivingOptions = Pick<DedupParts, 'effects' | 'fingerprintOf'> & { readonly store?: RecordStore<DedupRecord> };

/** A consumer whose dead letters go to a box, and an operator in front of it. */
export function redriving({ store: given, ...consumerParts }: RedrivingOptions = {}) {
  const system = manualSystem();
  const store = given ?? memoryRecordStore<DedupRecord>(system.clock);
  const letters = memoryLetters();
  const publisher = recordingPublisher();
  const ran: string[] = [];
  const consumer = (over: RecordStore<DedupRecord> = store) =>
    createDedup({ consumer: 'c', store: over, system, log: silentLog, ...consumerParts, options: { leaseMs: 1_000 } });
  const handle = consumer()(async ({ data }) => void ran.push(Buffer.from(data).toString()));
  const deliver = async (message: Message): Promise<string> => {
    const verdict = await handle(message, context());
    if (verdict.kind === 'deadLetter') await deadLetterTopic(letters.topic, 'dead').publish(message, verdict);
    return verdict.reason;
  };
  const told: string[] = [];
  const ask = (as: Redrive, more: Partial<RedriveParts> = {}) =>
    redrive({
      letters,
      store,
      publisher,
      system,
      as,
      messageIds: new Set(),
      limit: Number.POSITIVE_INFINITY,
      dryRun: false,
      tell: (_, fate) => void told.push(fate),
      ...more,
    });
  /** What was published comes to the consumer. */
  const deliverPublished = async () => {
    const reasons: string[] = [];
    for (const { messageId, message } of publisher.published.splice(0)) reasons.push(await deliver(asDelivered(message, messageId)));
    return reasons;
  };
  /** A process that dies in its run: after the claim nothing of it reaches the store, and its lease is over. */
  const dieWith = async (message: Message) => {
    const silent = silentStore<DedupRecord>();
    const dying = { get: silent.get, put: (...args: Parameters<typeof store.put>) => (args[2] === 'absent' ? store : silent).put(...args) };
    void consumer(dying)(() => new Promise(() => {}))(message, context());
    await system.time.advance(1_001);
  };
  return { store, letters, publisher, ran, deliver, dieWith, told, ask, deliverPublished };
}

const asDelivered = ({ data, attributes }: OutgoingMessage, messageId: string) => testMessage({ messageId, data, attributes });
export const keyed = (messageId: string, data: string, more = {}) =>
  testMessage({ messageId, data, attributes: { 'ptk-key': 'k', ...more } });

/** A conflict: the key is finished with `old`, and `new` is a dead letter. */
export async function withConflict(options?: RedrivingOptions) {
  const all = redriving(options);
  await all.deliver(keyed('m1', 'old'));
  await all.deliver(keyed('m2', 'new', { own: '1' }));
  return all;
}
