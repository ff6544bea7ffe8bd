import { Timestamp, type WriteBatch } from '@google-cloud/firestore';
import { ToolkitError, textOf } from '../errors.ts';
import type { Version } from '../ports.ts';

/** gRPC codes. A refused precondition is one of four, and which one says nothing (protocol 0.7). */
export const grpcCode = { invalidArgument: 3, notFound: 5, alreadyExists: 6, failedPrecondition: 9, aborted: 10 } as const;
const conflicts: readonly unknown[] = [grpcCode.notFound, grpcCode.alreadyExists, grpcCode.failedPrecondition, grpcCode.aborted];

export const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null | undefined)?.code;

export const isConflict = (error: unknown): boolean => conflicts.includes(codeOf(error));

export const storeError = (error: unknown): ToolkitError => new ToolkitError('STORE_UNAVAILABLE', `Firestore: ${textOf(error)}`, error);

/** @throws STORE_UNAVAILABLE for whatever the call throws */
export const guarded = <T>(call: () => Promise<T>): Promise<T> =>
  call().catch((error: unknown) => {
    throw storeError(error);
  });

/** @returns whether it was applied; not where a precondition is refused. @throws STORE_UNAVAILABLE */
export const unlessConflict = (call: () => Promise<unknown>): Promise<boolean> =>
  call().then(
    () => true,
    (error: unknown) => {
      if (isConflict(error)) return false;
      throw storeError(error);
    },
  );

/** Too long an id, too large a document, or a value that Firestore does not hold: no retry can mend it. */
export const refusal = (error: unknown): ToolkitError | undefined =>
  codeOf(error) === grpcCode.invalidArgument ? new ToolkitError('REFUSED', `Firestore: ${textOf(error)}`, error) : undefined;

export const versionOf = (updateTime: Timestamp): Version => `${updateTime.seconds}.${updateTime.nanoseconds}`;

type ProtoTime = { readonly seconds?: unknown; readonly nanos?: unknown } | null;
type CommitResponse = { readonly writeResults?: readonly { readonly updateTime?: ProtoTime }[] | null; readonly commitTime?: ProtoTime };

/** What the client's own log knows a commit by: it would draw 40 random bytes for each, which cost 3 % of a release. */
let commits = 0;

/**
 * Commits, and tells the version of each write. `WriteBatch.commit` tries a commit that was aborted again by itself, for minutes, though its
 * precondition can never hold again, and looks a module up in the file system each time (0.1 ms of 0.7); the method below it does neither. It
 * gives no instants of the client's own class, so the first commit of a client goes the public way.
 *
 * @param learn told of an instant of the client's class
 */
export async function committed(batch: WriteBatch, isKnown: boolean, learn: (time: Timestamp) => void): Promise<Version[]> {
  const { _commit: commit }: { _commit?: unknown } = batch as object;
  if (!isKnown || typeof commit !== 'function') {
    const results = await batch.commit();
    if (results[0]) learn(results[0].writeTime);
    return results.map(({ writeTime }) => versionOf(writeTime));
  }
  const { writeResults, commitTime }: CommitResponse = await commit.call(batch, { requestTag: `ptk-${++commits}` });
  return (writeResults ?? []).map(({ updateTime }) => {
    const { seconds, nanos } = updateTime ?? commitTime ?? {};
    return `${Number(seconds ?? 0)}.${Number(nanos ?? 0)}`;
  });
}

/** @param Instant of the client that takes it: it refuses the class of a second copy of the package as a precondition */
export function instantOf(version: Version, Instant: typeof Timestamp = Timestamp): Timestamp {
  const [seconds = '0', nanoseconds = '0'] = version.split('.');
  return new Instant(Number(seconds), Number(nanoseconds));
}
