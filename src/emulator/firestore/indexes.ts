import { failedPrecondition } from '../grpc.ts';
import { type Disjunction, disjunctionsOf } from './disjunctions.ts';
import type { CompositeIndex, IndexDefinitions, IndexField, QueryScope } from './index-definitions.ts';
import { nameField } from './paths.ts';
import { planQuery, type QueryPlan, type StructuredQuery } from './query.ts';

/** Plans a query, and in strict mode refuses one that production would have no index for. */
export type Planner = (parent: string, query: StructuredQuery, aggregatedFields?: readonly string[]) => QueryPlan;

/** @param definitions what there is besides the automatic indexes; without them every query is served */
export function createPlanner(definitions: IndexDefinitions | undefined): Planner {
  return (parent, query, aggregatedFields = []) => {
    const plan = planQuery(parent, query);
    if (definitions && plan.scope.collectionId !== '') {
      for (const disjunction of disjunctionsOf(query.where)) requireIndex(definitions, needOf(plan, disjunction, aggregatedFields));
    }
    return plan;
  };
}

/** Fields that are compared with a value, in any order, and after them those that are sorted by, in this one. */
type Need = {
  readonly collectionGroup: string;
  readonly queryScope: QueryScope;
  readonly compared: readonly IndexField[];
  readonly sorted: readonly IndexField[];
};

function needOf({ scope, orders }: QueryPlan, { equal, contains }: Disjunction, aggregatedFields: readonly string[]): Need {
  const sorted: IndexField[] = orders
    .filter(({ fieldPath }) => !equal.has(fieldPath))
    .map(({ fieldPath, descending }) => ({ fieldPath, order: descending ? 'DESCENDING' : 'ASCENDING' }));
  const known = new Set([...equal, ...sorted.map(({ fieldPath }) => fieldPath)]);
  const aggregated = [...new Set(aggregatedFields)].filter((fieldPath) => !known.has(fieldPath));
  return {
    collectionGroup: scope.collectionId,
    queryScope: scope.allDescendants ? 'COLLECTION_GROUP' : 'COLLECTION',
    compared: [
      ...[...equal].map((fieldPath): IndexField => ({ fieldPath, order: 'ASCENDING' })),
      ...[...contains].map((fieldPath): IndexField => ({ fieldPath, arrayConfig: 'CONTAINS' })),
    ],
    sorted: [...withoutName(sorted), ...aggregated.map((fieldPath): IndexField => ({ fieldPath, order: 'ASCENDING' }))],
  };
}

/** Every index ends with the name anyhow, in the direction of the field before it. */
function withoutName(fields: readonly IndexField[]): readonly IndexField[] {
  const [before, last] = [fields.at(-2), fields.at(-1)];
  return last?.fieldPath === nameField && (before?.order ?? last.order) === last.order ? fields.slice(0, -1) : fields;
}

/**
 * An index serves what it compares in front of exactly the sorted fields. Several are merged: together they have to compare every field.
 *
 * @see the firestore documentation, "Taking advantage of index merging"
 */
function requireIndex(definitions: IndexDefinitions, need: Need): void {
  const { compared, sorted } = need;
  if (compared.length + sorted.length === 0) return;
  const served = candidates(definitions, need)
    .map((fields) => servedBy(fields, need))
    .filter((fields) => fields !== undefined);
  const uncovered = compared.filter((field) => !served.some((fields) => fields.includes(field)));
  const isSorted = sorted.length === 0 || served.length > 0;
  if (uncovered.length === 0 && isSorted) return;
  throw failedPrecondition(`The query requires an index. firestore.indexes.json needs ${missing(need, uncovered)}`);
}

/** The automatic and overridden indexes of the fields concerned, and the composite ones. */
function candidates({ indexes = [], fieldOverrides = [] }: IndexDefinitions, need: Need): (readonly IndexField[])[] {
  const composite = indexes.filter(
    ({ collectionGroup, queryScope }) => collectionGroup === need.collectionGroup && queryScope === need.queryScope,
  );
  const overrides = fieldOverrides.filter(({ collectionGroup }) => collectionGroup === need.collectionGroup);
  const single = [...need.compared, ...need.sorted].flatMap(({ fieldPath }) => {
    const override = [...ancestors(fieldPath), '*'].map((path) => overrides.find((entry) => entry.fieldPath === path)).find(Boolean);
    const modes = override?.indexes?.filter(({ queryScope = 'COLLECTION' }) => queryScope === need.queryScope);
    return (modes ?? (need.queryScope === 'COLLECTION' ? automatic : [])).map((mode) => [{ ...mode, fieldPath }]);
  });
  return [...composite.map(({ fields }) => withoutName(fields)), ...single];
}

const automatic = [{ order: 'ASCENDING' }, { order: 'DESCENDING' }, { arrayConfig: 'CONTAINS' }] as const;

/** The path and the maps around it, whose override it inherits. */
function ancestors(fieldPath: string): string[] {
  const segments = fieldPath.split('.');
  return segments.map((_, index) => segments.slice(0, segments.length - index).join('.'));
}

/** The compared fields that an index serves; undefined where it is of no use. */
function servedBy(fields: readonly IndexField[], { compared, sorted }: Need): IndexField[] | undefined {
  const front = fields.slice(0, Math.max(fields.length - sorted.length, 0));
  const end = fields.slice(front.length);
  if (end.length !== sorted.length || !end.every((field, index) => isSame(field, sorted[index]))) return undefined;
  const found = front.map((field) => compared.find((wanted) => serves(field, wanted)));
  return found.every((field) => field !== undefined) ? found : undefined;
}

const isSame = (field: IndexField, wanted: IndexField | undefined) => field.fieldPath === wanted?.fieldPath && field.order === wanted.order;

/** For equality the direction is all the same. */
function serves(field: IndexField, wanted: IndexField): boolean {
  if (field.fieldPath !== wanted.fieldPath) return false;
  return wanted.arrayConfig ? field.arrayConfig === wanted.arrayConfig : field.order !== undefined;
}

function missing({ collectionGroup, queryScope, compared, sorted }: Need, uncovered: readonly IndexField[]): string {
  const fields = [...compared, ...sorted];
  const [first] = sorted.length === 0 ? uncovered : fields;
  if (first && (fields.length === 1 || sorted.length === 0)) {
    const { fieldPath, ...mode } = first;
    return `in "fieldOverrides": ${JSON.stringify({ collectionGroup, fieldPath, indexes: [{ ...mode, queryScope }] })}`;
  }
  return `in "indexes": ${JSON.stringify({ collectionGroup, queryScope, fields } satisfies CompositeIndex)}`;
}
