import type { DeadLetters, Log, Message } from '../shared/index.ts';

export { memoryRecordStore } from '../shared/adapters/memory.ts';
export { memoryDelayLedger } from '../shared/adapters/memory-delays.ts';
export { memoryVersionedDocuments } from '../shared/adapters/memory-documents.ts';
export { memoryFifoStore } from '../shared/adapters/memory-fifo.ts';
export { memoryLatenessStore } from '../shared/adapters/memory-lateness.ts';
export { memoryPayloadStore } from '../shared/adapters/memory-payloads.ts';

/** A delivery with everything that a test does not care about. */
export function testMessage(given: Partial<Omit<Message, 'data'>> & { data?: string | Uint8Array } = {}): Message {
  const { data = '', ...rest } = given;
  return {
    messageId: '1',
    attributes: {},
    orderingKey: '',
    publishTimeMs: Date.UTC(2026, 0, 1),
    subscription: 'projects/test/subscriptions/test',
    deliveryAttempt: undefined,
    ...rest,
    data: typeof data === 'string' ? Buffer.from(data) : data,
  };
}

export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Dead letters that a test can look at. */
export function keptDeadLetters(): DeadLetters & { readonly kept: { message: Message; reason: string; detail: string }[] } {
  const kept: { message: Message; reason: string; detail: string }[] = [];
  return { kept, publish: async (message, { reason, detail }) => void kept.push({ message, reason, detail }) };
}
