import { RpcError } from '../grpc.ts';
import type { Database } from './database.ts';
import type { StoredDocument } from './documents.ts';
import { fieldAt } from './fields.ts';
import { timestampOf } from './instants.ts';
import { parseFieldPath, rootOf } from './paths.ts';

/** A field whose timestamp says from when on a document of the collection group may be deleted. */
export type TtlPolicy = { readonly collectionGroup: string; readonly field: string };

/** Deletes what has expired, each document for itself as production does; one that changes meanwhile stays. Returns how many went. */
export async function sweepExpired(name: string, database: Database, policy: TtlPolicy, nowMs: number): Promise<number> {
  const path = parseFieldPath(policy.field);
  const hasExpired = ({ fields }: StoredDocument) => {
    const value = fieldAt(fields, path);
    if (value?.valueType !== 'timestampValue') return false;
    return Number(value.timestampValue.seconds) * 1_000 + value.timestampValue.nanos / 1_000_000 <= nowMs;
  };
  const scope = { parent: rootOf(name), collectionId: policy.collectionGroup, allDescendants: true };
  const expired = [...database.documents.scan(scope)].filter(hasExpired);
  const deleted = await Promise.all(expired.map((document) => deleteAsIs(database, document)));
  return deleted.filter(Boolean).length;
}

async function deleteAsIs({ commit }: Database, { name, updatedAtMicros }: StoredDocument): Promise<boolean> {
  const currentDocument = { conditionType: 'updateTime', updateTime: timestampOf(updatedAtMicros) } as const;
  try {
    await commit([{ operation: 'delete', delete: name, updateMask: null, updateTransforms: [], currentDocument }], Buffer.alloc(0));
    return true;
  } catch (error) {
    if (error instanceof RpcError) return false;
    throw error;
  }
}
