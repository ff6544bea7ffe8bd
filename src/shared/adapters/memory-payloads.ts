import { chunkId, chunksOf, isPayload } from '../payload.ts';
import type { PayloadRef, PayloadStore } from '../ports.ts';

/** Payloads of this process alone, gone with it: for tests. Keeps what is over as Firestore may do. */
export function memoryPayloadStore(): PayloadStore {
  const payloads = new Map<string, Uint8Array>();
  /** The id that takes most; what Firestore does not take is not taken here. */
  const keyOf = (ref: PayloadRef) => {
    chunkId(ref, chunksOf(ref) - 1);
    return ref.id;
  };
  return {
    put: async (ref, bytes) => void payloads.set(keyOf(ref), Uint8Array.from(bytes)),
    async get(ref) {
      const bytes = payloads.get(keyOf(ref));
      return bytes && isPayload(ref, bytes) ? Uint8Array.from(bytes) : undefined;
    },
    remove: async (ref) => void payloads.delete(keyOf(ref)),
  };
}
