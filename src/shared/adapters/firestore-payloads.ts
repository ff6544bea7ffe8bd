import type { DocumentSnapshot, Firestore } from '@google-cloud/firestore';
import { ToolkitError } from '../errors.ts';
import { chunkBytes, chunkId, chunksOf, isPayload } from '../payload.ts';
import type { Clock, PayloadRef, PayloadStore } from '../ports.ts';
import { guarded, unlessConflict } from './firestore-answers.ts';

/** A request holds 10 MiB (`docs/facts.md` B.8), so each chunk goes by itself, and this many at a time. */
const chunksAtOnce = 4;
/** Who changes a chunk at the same time writes the same bytes, so a second try nearly always settles it. */
const tries = 5;

type Chunk = { readonly bytes: Buffer; readonly sha256: string; readonly of: number };

/**
 * Payloads in chunks, in `ptk-payloads` with the prefix given. Other bytes under an id that is in use take the place of those that are
 * there. The client is the caller's: connected, and closed by the caller.
 */
export function firestorePayloadStore(db: Firestore, clock: Pick<Clock, 'nowMs'>, prefix = ''): PayloadStore {
  const collection = db.collection(`${prefix}ptk-payloads`);
  const documentOf = (ref: PayloadRef, chunk: number) => collection.doc(chunkId(ref, chunk));

  /** Another worker, or an earlier try of this one, may have written the chunk, or half of the chunks. */
  const store = async (ref: PayloadRef, index: number, chunk: Chunk, expireAtMs: number) => {
    const document = documentOf(ref, index);
    for (let attempt = 1; attempt <= tries; attempt++) {
      if (await unlessConflict(() => document.create({ ...chunk, expireAt: new Date(expireAtMs) }))) return;
      const there = await guarded(() => document.get());
      if (!there.updateTime) continue;
      const keptUntilMs = expireAtMsOf(there);
      const isWhole = isOf(there, chunk) && chunk.bytes.equals(there.get('bytes'));
      if (isWhole && keptUntilMs >= expireAtMs) return;
      const expireAt = new Date(Math.max(keptUntilMs, expireAtMs));
      const changes = isWhole ? { expireAt } : { ...chunk, expireAt };
      const { updateTime: lastUpdateTime } = there;
      if (await unlessConflict(() => document.update(changes, { lastUpdateTime }))) return;
    }
    throw new ToolkitError('STORE_UNAVAILABLE', `Firestore: ${document.path} was changed by others in each of ${tries} tries`);
  };

  return {
    async put(ref, bytes, keepMs) {
      const expireAtMs = clock.nowMs() + keepMs;
      const of = chunksOf(ref);
      await inTurn(of, (index) => {
        const part = bytes.subarray(index * chunkBytes, (index + 1) * chunkBytes);
        // No copy: the client takes no other kind of bytes than a buffer.
        const buffer = Buffer.from(part.buffer, part.byteOffset, part.length);
        return store(ref, index, { bytes: buffer, sha256: ref.sha256, of }, expireAtMs);
      });
    },
    async get(ref) {
      const of = chunksOf(ref);
      const chunks: Uint8Array[] = [];
      while (chunks.length < of) {
        const count = Math.min(chunksAtOnce, of - chunks.length);
        const documents = Array.from({ length: count }, (_, index) => documentOf(ref, chunks.length + index));
        // Part of it is no use, so the rest of it need not be read.
        for (const document of await guarded(() => db.getAll(...documents))) {
          if (!isOf(document, { sha256: ref.sha256, of })) return undefined;
          chunks.push(document.get('bytes'));
        }
      }
      const whole = Buffer.concat(chunks);
      return isPayload(ref, whole) ? whole : undefined;
    },
    remove: (ref) => inTurn(chunksOf(ref), async (index) => void (await guarded(() => documentOf(ref, index).delete()))),
  };
}

async function inTurn(count: number, work: (index: number) => Promise<void>): Promise<void> {
  for (let from = 0; from < count; from += chunksAtOnce)
    await Promise.all(Array.from({ length: Math.min(chunksAtOnce, count - from) }, (_, index) => work(from + index)));
}

/** Whether a document is a chunk of this payload, whatever its bytes are. */
const isOf = (document: DocumentSnapshot, { sha256, of }: Pick<Chunk, 'sha256' | 'of'>): boolean =>
  document.get('sha256') === sha256 && document.get('of') === of && document.get('bytes') instanceof Uint8Array;

/** By shape: a second copy of the client has a class of its own. */
function expireAtMsOf(document: DocumentSnapshot): number {
  const expireAt: { toMillis?: () => number } | undefined = document.get('expireAt');
  return expireAt?.toMillis?.() ?? 0;
}
