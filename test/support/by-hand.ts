import { createHash } from 'node:crypto';
import { type DocumentData, type DocumentSnapshot, FieldValue, type Firestore, Timestamp } from '@google-cloud/firestore';

// What `docs/protocol.md` says, as somebody without the toolkit would write it down: the clients and node:crypto, and nothing of src/.

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** `enc` of 0.15, byte by byte. */
export function encoded(name: string): string {
  let text = '';
  for (const byte of Buffer.from(name)) {
    const char = String.fromCharCode(byte);
    text += /[A-Za-z0-9!*'()-]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return text;
}

export const shardOf = (text: string): number => Number.parseInt(sha256(text).slice(0, 2), 16) % 16;

const conflicts: readonly unknown[] = [5, 6, 9, 10];

/** False where a precondition does not hold (0.7). */
export async function commits(write: Promise<unknown>): Promise<boolean> {
  try {
    await write;
    return true;
  } catch (error) {
    if (conflicts.includes((error as { code?: unknown }).code)) return false;
    throw error;
  }
}

export type Numbered = { readonly key: string; readonly epoch: number; readonly seq: number; readonly attributes: Record<string, string> };

/** A publisher of one stream: S1 to S3 and S5 of 3.3. */
export function publisherByHand(db: Firestore, stream: string, topic: string) {
  const counter = db.doc(`ptk-streams/${encoded(stream)}`);
  const entryOf = (key: string) => db.doc(`ptk-outbox/${sha256(stream)}~${sha256(key)}`);

  const append = (read: DocumentSnapshot, keys: readonly string[], nowMs: number, handoffMs: number) => {
    const { next = 1, epoch = read.readTime.toMillis(), rev = 0, topic: own = topic } = read.data() ?? {};
    const batch = db.batch();
    const moved = { next: next + keys.length, epoch, rev: rev + 1, topic: own };
    if (read.updateTime) batch.update(counter, moved, { lastUpdateTime: read.updateTime });
    else batch.create(counter, moved);
    keys.forEach((key, index) => {
      const attributes = {
        'ptk-key': key,
        'ptk-stream': stream,
        'ptk-seq': String(next + index),
        'ptk-epoch': String(epoch),
        'ptk-origin-time': new Date(nowMs).toISOString(),
      };
      batch.create(entryOf(key), {
        ...{ state: 'pending', stream, epoch, seq: next + index, key, topic, attempts: 0, messageId: null, shard: shardOf(stream) },
        message: { data: Buffer.from(`body of ${key}`), attributes },
        nextAttemptAt: Timestamp.fromMillis(nowMs + handoffMs),
      });
    });
    return commits(batch.commit());
  };

  return {
    /** The numbers of these keys, old or new; a relay may publish them after `handoffMs`. */
    async number(keys: readonly string[], handoffMs: number): Promise<Numbered[]> {
      for (;;) {
        const [read, ...found] = await db.getAll(counter, ...keys.map(entryOf));
        if (!read) throw new Error('nothing read');
        const missing = keys.filter((_, index) => !found[index]?.exists);
        if (missing.length > 0) {
          await append(read, missing, Date.now(), handoffMs);
          continue;
        }
        return found.map((entry) => {
          const { key, epoch, seq, message } = entry.data() as DocumentData;
          return { key, epoch, seq, attributes: message?.attributes ?? {} };
        });
      }
    },
    async markPublished(key: string, messageId: string): Promise<void> {
      const expireAt = Timestamp.fromMillis(Date.now() + 691_200_000);
      await entryOf(key).update({ state: 'published', messageId, message: null, nextAttemptAt: FieldValue.delete(), expireAt });
    },
    entry: async (key: string) => (await entryOf(key).get()).data(),
    counter: async () => (await counter.get()).data(),
  };
}

/** A delivery, of which no more is told than a subscriber gets. */
export type Delivered = { readonly messageId: string; readonly data: Buffer; readonly attributes: Record<string, string> };
type Read = { readonly cursor: DocumentData; readonly snapshot: DocumentSnapshot; readonly isHeld: boolean };
/** The cursor as this subscriber wrote it last. */
type Held = { readonly cursor: DocumentData; readonly version: Timestamp };
type Case = 'old' | 'blocked' | 'early' | 'own' | 'busy' | 'head';

/** A subscriber of one stream in one epoch: F0 to F6 of 4.3, for numbers from 1. */
export function subscriberByHand(db: Firestore, consumer: string, stream: string, epoch: number, leaseMs: number) {
  const cursorId = `${encoded(consumer)}~${encoded(stream)}`;
  const ref = db.doc(`ptk-cursors/${cursorId}`);
  const parkedRef = (seq: number) => db.doc(`ptk-parked/${sha256(cursorId)}~${epoch}~${String(seq).padStart(16, '0')}`);
  const places = { last: 0, start: 1, epoch, prevEpoch: 0, prevLast: 0, round: 0, by: 0, started: 0 };
  const fresh: DocumentData = { ...places, rev: 0, runId: '', leaseMs: 0, attempts: 0, blocked: null, skipped: [], recent: [] };
  let runs = 0;

  const readOf = (snapshot: DocumentSnapshot): Read => {
    const cursor = snapshot.data() ?? fresh;
    const ageMs = snapshot.readTime.toMillis() - (snapshot.updateTime?.toMillis() ?? 0);
    return { cursor, snapshot, isHeld: cursor.runId !== '' && ageMs < cursor.leaseMs };
  };
  const read = async () => readOf(await ref.get());

  const classified = ({ cursor, isHeld }: Read, seq: number, by: number): Case => {
    if (seq <= cursor.last) return 'old';
    if (cursor.blocked) return 'blocked';
    if (seq > cursor.last + 1) return 'early';
    return isHeld ? (cursor.by === by ? 'own' : 'busy') : 'head';
  };

  /** One commit of the cursor with what changes beside it; undefined where another one was faster. */
  const written = async (cursor: DocumentData, version: Timestamp | undefined, unparked?: number): Promise<Held | undefined> => {
    const batch = db.batch();
    if (version) batch.update(ref, cursor, { lastUpdateTime: version });
    else batch.create(ref, cursor);
    if (unparked !== undefined) batch.delete(parkedRef(unparked));
    let writeTime: Timestamp | undefined;
    await commits(
      batch.commit().then(([first]) => {
        writeTime = first?.writeTime;
      }),
    );
    return writeTime && { cursor, version: writeTime };
  };

  /** F1, on behalf of the delivery of number `by`. */
  const claim = ({ cursor, snapshot }: Read, seq: number, by = seq): Promise<Held | undefined> => {
    const attempts = cursor.attempts + (cursor.runId !== '' && cursor.started === seq ? 1 : 0);
    const claimed = { ...cursor, rev: cursor.rev + 1, runId: `hand-${++runs}`, by, started: seq, leaseMs, attempts };
    return written(claimed, snapshot.updateTime);
  };

  /** F5: gives the stream up, or keeps it on behalf of a delivery. */
  const commit = ({ cursor, version }: Held, { attributes }: Delivered, keptFor?: number): Promise<Held | undefined> => {
    const seq = cursor.last + 1;
    const done = { seq, key: sha256(attributes['ptk-key'] ?? '').slice(0, 16), originMs: Date.parse(attributes['ptk-origin-time'] ?? '') };
    const lease = keptFor === undefined ? { runId: '', by: 0 } : { by: keptFor, started: seq + 1 };
    const recent = [...cursor.recent, done].slice(-20);
    return written({ ...cursor, rev: cursor.rev + 1, last: seq, attempts: 0, recent, ...lease }, version, seq);
  };

  /** An operator's command (4.11): claimed, and then changed. */
  const command = async (changes: DocumentData): Promise<Held | undefined> => {
    const { cursor, snapshot } = await read();
    const claimed = { ...cursor, rev: cursor.rev + 1, runId: `hand-${++runs}`, by: 0, started: 0, leaseMs: 10_000 };
    const held = await written(claimed, snapshot.updateTime);
    return held && written({ ...claimed, ...changes, rev: claimed.rev + 1, runId: '' }, held.version);
  };

  /** F3; one that is there stays. */
  const park = (reason: string, { messageId, data, attributes }: Delivered, nowMs: number): Promise<boolean> => {
    const seq = Number(attributes['ptk-seq']);
    const message = { messageId, data, attributes, orderingKey: '', publishTimeMs: null, subscription: 'projects/p/subscriptions/s' };
    const times = { parkedAt: Timestamp.fromMillis(nowMs), dueAt: Timestamp.fromMillis(nowMs + 60_000) };
    return commits(parkedRef(seq).create({ consumer, stream, epoch, seq, reason, ...times, message, shard: shardOf(stream) }));
  };

  /** F6: runs what is left behind, until nothing is. */
  const lookBehind = async (by: number, handle: (message: Delivered) => void): Promise<'ack' | 'nack'> => {
    for (let seq = (await read()).cursor.last + 1; ; ) {
      const [snapshot, parked] = (await db.getAll(ref, parkedRef(seq))) as [DocumentSnapshot, DocumentSnapshot];
      const seen = readOf(snapshot);
      const found = classified(seen, seq, by);
      if (found === 'old') seq = seen.cursor.last + 1;
      else if (found === 'own') return 'nack';
      else if (found !== 'head' || !parked.exists) return 'ack';
      else {
        const held = await claim(seen, seq, by);
        if (!held) continue;
        const message = parked.get('message') as Delivered;
        handle(message);
        if (!(await commit(held, message))) return 'nack';
      }
    }
  };

  /** A whole delivery; resolves to what Pub/Sub is told. */
  const deliver = async (message: Delivered, handle: (message: Delivered) => void, nowMs: number): Promise<'ack' | 'nack'> => {
    const seq = Number(message.attributes['ptk-seq']);
    for (let isParked = false; ; ) {
      const seen = await read();
      const found = classified(seen, seq, seq);
      if (found === 'own') return 'nack';
      if (found === 'old') {
        await parkedRef(seq).delete();
        return await lookBehind(seq, handle);
      }
      if (found === 'head') {
        const held = await claim(seen, seq);
        if (!held) continue;
        handle(message);
        return (await commit(held, message)) ? await lookBehind(seq, handle) : 'nack';
      }
      // Parked, and looked at once more (F4).
      if (isParked) return 'ack';
      await park(found, message, nowMs);
      isParked = true;
    }
  };

  return { ref, read, claim, commit, command, park, lookBehind, deliver };
}
