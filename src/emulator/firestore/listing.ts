import { invalidArgument, unimplemented } from '../grpc.ts';
import type { Reader } from './database.ts';
import type { Documents, StoredDocument } from './documents.ts';
import type { Timestamp } from './instants.ts';
import { nameField } from './paths.ts';
import { planQuery, type StructuredQuery } from './query.ts';
import { compareNames } from './text-order.ts';

export type ListDocumentsRequest = {
  readonly parent: string;
  readonly collectionId: string;
  readonly pageSize: number;
  readonly pageToken: string;
  readonly orderBy: string;
  readonly showMissing: boolean;
};

export type Page<Item> = { readonly items: readonly Item[]; readonly nextPageToken: string };

/** The documents of a collection by name; with `showMissing` also the names that only lie above other documents. */
export function listDocuments(reader: Reader, documents: Documents, request: ListDocumentsRequest): Page<StoredDocument | string> {
  if (request.orderBy !== '') throw unimplemented('order_by of ListDocuments');
  const { rows } = reader.query(planQuery(request.parent, everythingIn(request.collectionId)));
  const found: (StoredDocument | string)[] = rows.map(({ document }) => document);
  if (request.showMissing) {
    const present = new Set(rows.map(({ document }) => document.name));
    for (const name of documents.namesIn(`${request.parent}/${request.collectionId}`)) if (!present.has(name)) found.push(name);
    found.sort((left, right) => compareNames(nameOf(left), nameOf(right)));
  }
  return pageOf(found, nameOf, request);
}

export function listCollectionIds(documents: Documents, request: { parent: string; pageSize: number; pageToken: string }): Page<string> {
  return pageOf(documents.collectionIds(request.parent).sort(compareNames), (id) => id, request);
}

export type PartitionRequest = {
  readonly parent: string;
  readonly structuredQuery: StructuredQuery | null;
  readonly partitionCount: string;
  readonly readTime: Timestamp | null;
  readonly pageSize: number;
  readonly pageToken: string;
};

/** Names of documents that cut a collection group into parts of about the same size; up to `partition_count` cuts. */
export function partitionPoints(reader: Reader, { parent, structuredQuery, partitionCount, ...paging }: PartitionRequest): Page<string> {
  const cuts = Number(partitionCount);
  if (cuts <= 0) throw invalidArgument(`partition_count is ${partitionCount}; it must be above 0`);
  if (!structuredQuery || !isWholeGroup(structuredQuery))
    throw invalidArgument(`PartitionQuery needs a structured query of a collection group by ${nameField} and nothing else`);
  const { rows } = reader.query(planQuery(parent, structuredQuery));
  const parts = Math.min(cuts + 1, rows.length);
  const points = Array.from({ length: Math.max(parts - 1, 0) }, (_, cut) => rows[Math.floor(((cut + 1) * rows.length) / parts)]);
  return pageOf(
    points.flatMap((row) => row?.document.name ?? []),
    (name) => name,
    paging,
  );
}

function isWholeGroup({ from, where, orderBy, startAt, endAt, offset, limit }: StructuredQuery): boolean {
  const byName = orderBy.every(({ field, direction }) => field?.fieldPath === nameField && direction !== 'DESCENDING');
  return from[0]?.allDescendants === true && byName && !where && !startAt && !endAt && offset === 0 && !limit;
}

export function nameOf(listed: StoredDocument | string): string {
  return typeof listed === 'string' ? listed : listed.name;
}

function everythingIn(collectionId: string): StructuredQuery {
  const from = [{ collectionId, allDescendants: false }];
  return { from, select: null, where: null, orderBy: [], startAt: null, endAt: null, offset: 0, limit: null, findNearest: null };
}

/** A token is the key of the last item before it, so that a page stays right when items come and go. */
function pageOf<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  { pageSize, pageToken }: { pageSize: number; pageToken: string },
): Page<Item> {
  if (pageSize < 0) throw invalidArgument(`page_size is ${pageSize}; it must not be negative`);
  const after = Buffer.from(pageToken, 'base64url').toString();
  const rest = pageToken === '' ? items : items.filter((item) => compareNames(keyOf(item), after) > 0);
  const page = pageSize === 0 ? rest : rest.slice(0, pageSize);
  const last = page.at(-1);
  const nextPageToken = last !== undefined && page.length < rest.length ? Buffer.from(keyOf(last)).toString('base64url') : '';
  return { items: page, nextPageToken };
}
