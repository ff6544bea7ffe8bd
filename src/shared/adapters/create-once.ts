import { ToolkitError, textOf } from '../errors.ts';
import type { System } from '../ports.ts';
import { ack, deadLetter, type Verdict } from '../verdict.ts';
import { jittered, pause, within } from '../waiting.ts';
import { codeOf, refusal } from './firestore-answers.ts';
import { differingFields } from './same-fields.ts';
import { system as realSystem } from './system.ts';

/** The part of a `DocumentReference` that is used: of this package's Firestore client, of `firebase-admin`'s, or of another copy. */
export type CreatableDocument = {
  readonly path: string;
  create(data: object): Promise<unknown>;
  get(): Promise<{ readonly exists: boolean; data(): object | undefined }>;
};

type StoredIn<Ref extends CreatableDocument> = NonNullable<ReturnType<Awaited<ReturnType<Ref['get']>>['data']>>;
type WrittenTo<Ref extends CreatableDocument> = Parameters<Ref['create']>[0];

export type CreateOnceOptions<Ref extends CreatableDocument> = {
  /**
   * Whether what is stored came from the same message. By default every field of `data` must equal the stored one; fields that are
   * only stored do not count, nor does what `data` leaves to the server.
   */
  readonly same?: (stored: StoredIn<Ref>, data: WrittenTo<Ref>) => boolean;
  readonly system?: System;
  /** How long Firestore may leave the outcome open; 10 s by default. */
  readonly storeTimeoutMs?: number;
};

const retryPauseMs = 100;

/**
 * Creates a document that is its own dedup marker, for a handler to return: `processed` when this call made it, `duplicate` when it
 * stands there as wanted, a dead letter (`conflict`) when it stands there otherwise. The dead letter tells path and names of fields,
 * no values.
 *
 * A call whose answer was lost meets its own document, or a copy's: nothing in it tells which. Both are a `duplicate`, so that
 * `processed` is never said twice of one document.
 *
 * @throws STORE_UNAVAILABLE once `storeTimeoutMs` is over, and the document may be there or come; REFUSED for what Firestore does not
 *   hold
 */
export async function createOnce<Ref extends CreatableDocument>(
  ref: Ref,
  data: WrittenTo<Ref>,
  { same, system = realSystem, storeTimeoutMs = 10_000 }: CreateOnceOptions<Ref> = {},
): Promise<Verdict> {
  const { clock } = system;
  const untilMs = clock.monotonicMs() + storeTimeoutMs;
  const bounded = <T>(what: string, work: Promise<T>) =>
    within(clock, Math.max(untilMs - clock.monotonicMs(), 1), 'STORE_UNAVAILABLE', what, work);
  for (;;) {
    try {
      await bounded('create', ref.create(data));
      return ack('processed');
    } catch (error) {
      const refused = refusal(error);
      // What has no code was thrown by the client before it sent anything.
      if (refused || codeOf(error) === undefined) throw refused ?? error;
      const found = await bounded('get', ref.get()).catch((): undefined => undefined);
      if (found?.exists) return judged(ref, found.data() as StoredIn<Ref>, data, same);
      if (clock.monotonicMs() >= untilMs) throw new ToolkitError('STORE_UNAVAILABLE', `create ${ref.path}: ${textOf(error)}`, error);
      // Not there, or not known: the identical document is sent again, and at most one of them can be created.
      await pause(clock, jittered(system, retryPauseMs));
    }
  }
}

function judged<Ref extends CreatableDocument>(
  { path }: Ref,
  stored: StoredIn<Ref>,
  data: WrittenTo<Ref>,
  same: CreateOnceOptions<Ref>['same'],
): Verdict {
  const differing = differingFields(stored, data);
  if (same ? same(stored, data) : differing.length === 0) return ack('duplicate');
  return deadLetter('conflict', JSON.stringify({ path, differing }));
}
