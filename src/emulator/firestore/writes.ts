import { isDeepStrictEqual } from 'node:util';
import { alreadyExists, failedPrecondition, invalidArgument, notFound } from '../grpc.ts';
import type { Change, StoredDocument } from './documents.ts';
import { fieldAt, withField } from './fields.ts';
import { microsOf, type Timestamp, timestampOf } from './instants.ts';
import { checkDocument, type FieldPath, parseStoredPath } from './paths.ts';
import { checkDisjoint, documentBytes, documentLimitBytes, fieldsBytes, requestLimitBytes, storableFields } from './storable.ts';
import { type FieldTransform, transformed } from './transforms.ts';
import type { Fields, Value } from './values.ts';

type Mask = { readonly fieldPaths: readonly string[] };

export type Precondition =
  | { readonly conditionType: 'exists'; readonly exists: boolean }
  | { readonly conditionType: 'updateTime'; readonly updateTime: Timestamp };

/** A `google.firestore.v1.Write` as it arrives. */
export type Write = {
  /** Absent where the caller forgot it. */
  readonly operation?: 'update' | 'delete' | 'transform';
  readonly update?: { readonly name: string; readonly fields: Fields } | null;
  readonly delete?: string;
  readonly transform?: { readonly document: string; readonly fieldTransforms: readonly FieldTransform[] } | null;
  /** Present and empty touches no field; absent replaces the document. */
  readonly updateMask: Mask | null;
  readonly updateTransforms: readonly FieldTransform[];
  readonly currentDocument: Precondition | null;
};

export type WriteResult = { readonly updateTime: Timestamp | null; readonly transformResults: readonly Value[] };

export type CommitPlan = {
  readonly commitAtMicros: number;
  readonly changes: ReadonlyMap<string, Change>;
  readonly results: readonly WriteResult[];
};

/** For one document and commit. */
const transformLimit = 500;

/**
 * Decides what a commit changes: all of its writes in their order, each seeing the ones before.
 *
 * @throws RpcError of the first write that cannot be applied; then none is
 */
export function planCommit(
  database: string,
  writes: readonly Write[],
  read: (name: string) => StoredDocument | undefined,
  commitAtMicros: number,
): CommitPlan {
  const changes = new Map<string, Change>();
  const results: WriteResult[] = [];
  const transformCounts = new Map<string, number>();
  let payloadBytes = 0;
  for (const write of writes) {
    const name = targetOf(write);
    checkDocument(database, name);
    payloadBytes += fieldsBytes(write.update?.fields ?? {});
    if (payloadBytes > requestLimitBytes)
      throw invalidArgument(`the writes take ${payloadBytes} bytes or more; at most ${requestLimitBytes} are allowed`);
    const transformCount = (transformCounts.get(name) ?? 0) + transformsOf(write).length;
    if (transformCount > transformLimit) {
      throw invalidArgument(`the writes of ${name} hold ${transformCount} field transforms; at most ${transformLimit} are allowed`);
    }
    transformCounts.set(name, transformCount);
    const earlier = changes.get(name);
    const current = earlier ? earlier.after : read(name);
    checkPrecondition(name, write.currentDocument, current);
    const { after, result } = write.operation === 'delete' ? deleted : written(name, write, current, commitAtMicros);
    changes.set(name, { name, before: earlier ? earlier.before : current, after });
    results.push(result);
  }
  return { commitAtMicros, changes, results };
}

/** The name of the document that a write is about. */
export function targetOf(write: Write): string {
  switch (write.operation) {
    case 'update':
      return write.update?.name ?? '';
    case 'delete':
      return write.delete ?? '';
    case 'transform':
      return write.transform?.document ?? '';
    default:
      throw invalidArgument('a write holds no operation');
  }
}

function transformsOf({ operation, transform, updateTransforms }: Write): readonly FieldTransform[] {
  return (operation === 'transform' ? transform?.fieldTransforms : undefined) ?? updateTransforms;
}

type Written = { readonly after: StoredDocument | undefined; readonly result: WriteResult };

const deleted: Written = { after: undefined, result: { updateTime: null, transformResults: [] } };

function written(name: string, write: Write, current: StoredDocument | undefined, commitAtMicros: number): Written {
  const before = current?.fields ?? {};
  const updated = write.operation === 'transform' ? before : merged(before, storableFields(write.update?.fields ?? {}), write.updateMask);
  const { fields, transformResults } = withTransforms(updated, transformsOf(write), commitAtMicros);
  if (current && isDeepStrictEqual(fields, current.fields)) {
    return { after: current, result: { updateTime: timestampOf(current.updatedAtMicros), transformResults } };
  }
  const bytes = documentBytes(name, fields);
  if (bytes > documentLimitBytes) {
    throw invalidArgument(
      `Document '${name}' cannot be written because its size (${bytes} bytes) exceeds the maximum allowed size of ${documentLimitBytes} bytes.`,
    );
  }
  const after = { name, fields, createdAtMicros: current?.createdAtMicros ?? commitAtMicros, updatedAtMicros: commitAtMicros };
  return { after, result: { updateTime: timestampOf(commitAtMicros), transformResults } };
}

/** A masked path that the update does not hold is removed. */
function merged(before: Fields, update: Fields, mask: Mask | null): Fields {
  if (!mask) return update;
  const paths = mask.fieldPaths.map(parseStoredPath);
  checkDisjoint(paths);
  return paths.reduce((fields: Fields, path) => withField(fields, path, fieldAt(update, path)), before);
}

function withTransforms(before: Fields, transforms: readonly FieldTransform[], commitAtMicros: number) {
  let fields = before;
  const transformResults: Value[] = [];
  for (const transform of transforms) {
    const path: FieldPath = parseStoredPath(transform.fieldPath);
    const { value, result } = transformed(fieldAt(fields, path), transform, commitAtMicros);
    fields = withField(fields, path, value);
    transformResults.push(result);
  }
  return { fields, transformResults };
}

function checkPrecondition(name: string, condition: Precondition | null, current: StoredDocument | undefined): void {
  switch (condition?.conditionType) {
    case 'exists':
      if (condition.exists && !current) throw notFound(`No document to update: ${name}`);
      if (!condition.exists && current) throw alreadyExists(`Document already exists: ${name}`);
      return;
    case 'updateTime': {
      const { updateTime } = condition;
      const exact = current && updateTime.nanos % 1_000 === 0 && microsOf(updateTime) === current.updatedAtMicros;
      if (exact) return;
      const stored = current?.updatedAtMicros ?? 0;
      throw failedPrecondition(
        `the stored version (${stored}) does not match the required base version (${microsOf(updateTime)}) of ${name}`,
      );
    }
    default:
      return;
  }
}
