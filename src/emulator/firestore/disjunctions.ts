import { invalidArgument } from '../grpc.ts';
import type { Filter } from './filters.ts';
import { nameField } from './paths.ts';

/** Fields that one way to satisfy a filter compares with a value, or looks for one in. What bounds a range is in the orders. */
export type Disjunction = { readonly equal: ReadonlySet<string>; readonly contains: ReadonlySet<string> };

const nothing: Disjunction = { equal: new Set(), contains: new Set() };
const limit = 30;

/** A filter as alternatives without `or`: each of them is served by indexes of its own. */
export function disjunctionsOf(filter: Filter | null): readonly Disjunction[] {
  switch (filter?.filterType) {
    case 'compositeFilter': {
      const parts = filter.compositeFilter.filters.map(disjunctionsOf);
      return filter.compositeFilter.op === 'OR' ? checked(parts.flat()) : parts.reduce(product, [nothing]);
    }
    case 'fieldFilter':
      return [ofField(filter.fieldFilter.op, filter.fieldFilter.field?.fieldPath)];
    case 'unaryFilter':
      return [ofField(filter.unaryFilter.op, filter.unaryFilter.field?.fieldPath)];
    default:
      return [nothing];
  }
}

const equalities = new Set(['EQUAL', 'IN', 'IS_NULL', 'IS_NAN']);
const memberships = new Set(['ARRAY_CONTAINS', 'ARRAY_CONTAINS_ANY']);

function ofField(op: string, fieldPath = nameField): Disjunction {
  if (fieldPath === nameField) return nothing;
  return { equal: new Set(equalities.has(op) ? [fieldPath] : []), contains: new Set(memberships.has(op) ? [fieldPath] : []) };
}

function product(lefts: readonly Disjunction[], rights: readonly Disjunction[]): readonly Disjunction[] {
  const both = (left: Disjunction, right: Disjunction) => ({
    equal: new Set([...left.equal, ...right.equal]),
    contains: new Set([...left.contains, ...right.contains]),
  });
  return checked(lefts.flatMap((left) => rights.map((right) => both(left, right))));
}

function checked(disjunctions: readonly Disjunction[]): readonly Disjunction[] {
  if (disjunctions.length > limit) throw invalidArgument(`the filter has ${disjunctions.length} disjunctions; the limit is ${limit}`);
  return disjunctions;
}
