import type { RpcError } from '../grpc.ts';
import { answering } from './answers.ts';
import type { StoredDocument } from './documents.ts';
import type { Timestamp } from './instants.ts';
import type { FieldPath } from './paths.ts';
import type { ViewChange } from './view.ts';

/** A `ListenResponse` on its way. */
export type ListenAnswer = Record<string, unknown>;

type TargetChangeType = 'NO_CHANGE' | 'ADD' | 'REMOVE' | 'CURRENT' | 'RESET';

/** About one target. */
export function targetAnswer(targetChangeType: TargetChangeType, targetId: number): ListenAnswer {
  return { targetChange: { targetChangeType, targetIds: [targetId] } };
}

/** About one target as of an instant; a client that has got this far can resume from here. */
export function targetAnswerAt(targetChangeType: TargetChangeType, targetId: number, readTime: Timestamp): ListenAnswer {
  return { targetChange: { targetChangeType, targetIds: [targetId], readTime, resumeToken: tokenOf(readTime) } };
}

/** All targets are as of this instant: only now the client shows what came before. */
export function snapshotAnswer(readTime: Timestamp): ListenAnswer {
  return { targetChange: { targetChangeType: 'NO_CHANGE', targetIds: [], readTime, resumeToken: tokenOf(readTime) } };
}

/** The target is not listened to, and why. */
export function refusal(targetId: number, { code, message }: RpcError): ListenAnswer {
  return { targetChange: { targetChangeType: 'REMOVE', targetIds: [targetId], cause: { code, message } } };
}

export type Shown = {
  readonly targetId: number;
  readonly select: readonly FieldPath[] | undefined;
  readonly exists: (name: string) => boolean;
  readonly readTime: Timestamp;
};

/** What left a view is deleted, or only no longer part of it. */
export function changeAnswers({ shown, gone }: ViewChange, { targetId, select, exists, readTime }: Shown): ListenAnswer[] {
  const answer = answering(select);
  const changed = (document: StoredDocument) => ({ documentChange: { document: answer(document), targetIds: [targetId] } });
  const left = (name: string) => {
    const leaving = { document: name, readTime, removedTargetIds: [targetId] };
    return exists(name) ? { documentRemove: leaving } : { documentDelete: leaving };
  };
  return [...shown.map(changed), ...gone.map(left)];
}

function tokenOf({ seconds, nanos }: Timestamp): Buffer {
  return Buffer.from(`${seconds}.${nanos}`);
}
