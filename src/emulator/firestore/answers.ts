import type { StoredDocument } from './documents.ts';
import { projected } from './fields.ts';
import { timestampOf } from './instants.ts';
import { type FieldPath, parseStoredPath } from './paths.ts';

/** A `google.firestore.v1.DocumentMask` as it arrives. */
export type Mask = { readonly fieldPaths: readonly string[] };

/** Documents as they go on the wire, with the fields of a mask, or with all of them. */
export function masked(mask: Mask | null) {
  return answering(mask?.fieldPaths.map(parseStoredPath));
}

export function answering(select: readonly FieldPath[] | undefined) {
  return ({ name, fields, createdAtMicros, updatedAtMicros }: StoredDocument) => ({
    name,
    fields: select ? projected(fields, select) : fields,
    createTime: timestampOf(createdAtMicros),
    updateTime: timestampOf(updatedAtMicros),
  });
}
