/** Where the queries that an index serves may look. */
export type QueryScope = 'COLLECTION' | 'COLLECTION_GROUP';
export type IndexField = { readonly fieldPath: string; readonly order?: 'ASCENDING' | 'DESCENDING'; readonly arrayConfig?: 'CONTAINS' };
export type CompositeIndex = { readonly collectionGroup: string; readonly queryScope: QueryScope; readonly fields: readonly IndexField[] };

/** What a field of a collection group has in place of the automatic indexes. */
export type FieldOverride = {
  readonly collectionGroup: string;
  /** `*` stands for every field that has no override of its own. */
  readonly fieldPath: string;
  /** Documents go once this timestamp has passed, when they are swept. */
  readonly ttl?: boolean;
  readonly indexes?: readonly (Omit<IndexField, 'fieldPath'> & { readonly queryScope?: QueryScope })[];
};

/** The content of a `firestore.indexes.json`. */
export type IndexDefinitions = { readonly indexes?: readonly CompositeIndex[]; readonly fieldOverrides?: readonly FieldOverride[] };

/** @throws Error that names the entry which is wrong */
export function checkIndexes(given: unknown): IndexDefinitions {
  if (!isObject(given)) throw new Error('the index definitions are no object');
  for (const [index, entry] of entriesOf(given, 'indexes')) {
    const fields = isObject(entry) && Array.isArray(entry.fields) ? entry.fields : [];
    const isRight =
      isObject(entry) && isText(entry.collectionGroup) && isScope(entry.queryScope) && fields.length > 0 && fields.every(isField);
    if (!isRight)
      throw new Error(`indexes[${index}] needs collectionGroup, queryScope and fields, each with fieldPath and order or arrayConfig`);
  }
  for (const [index, entry] of entriesOf(given, 'fieldOverrides')) {
    const modes = isObject(entry) ? (entry.indexes ?? []) : undefined;
    const isRight =
      isObject(entry) && isText(entry.collectionGroup) && isText(entry.fieldPath) && Array.isArray(modes) && modes.every(isMode);
    if (!isRight) throw new Error(`fieldOverrides[${index}] needs collectionGroup, fieldPath and indexes, each with order or arrayConfig`);
  }
  return given;
}

function entriesOf(given: Record<string, unknown>, list: string): Iterable<[number, unknown]> {
  const entries = given[list] ?? [];
  if (!Array.isArray(entries)) throw new Error(`${list} of the index definitions is no array`);
  return entries.entries();
}

const isObject = (given: unknown): given is Record<string, unknown> => typeof given === 'object' && given !== null && !Array.isArray(given);
const isText = (given: unknown) => typeof given === 'string' && given !== '';
const isScope = (given: unknown) => given === 'COLLECTION' || given === 'COLLECTION_GROUP';
const isField = (given: unknown) => isObject(given) && isText(given.fieldPath) && isMode(given);

/** A vector index is a definition too; it serves no query that is supported here. */
function isMode(given: unknown): boolean {
  if (!isObject(given)) return false;
  const { order, arrayConfig, vectorConfig } = given;
  return order === 'ASCENDING' || order === 'DESCENDING' || arrayConfig === 'CONTAINS' || isObject(vectorConfig);
}
