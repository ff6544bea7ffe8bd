import { invalidArgument } from '../grpc.ts';
import { type FieldReference, type Operand, operandOf } from './filters.ts';
import type { Row } from './query.ts';
import { doubleOf, integerOf, isNumber, nullOf, numberOf, type Value } from './values.ts';

/** A `StructuredAggregationQuery.Aggregation` as it arrives. */
export type Aggregation = { readonly alias: string } & (
  | { readonly operator: 'count'; readonly count: { readonly upTo: { readonly value: string } | null } }
  | { readonly operator: 'sum'; readonly sum: { readonly field: FieldReference | null } }
  | { readonly operator: 'avg'; readonly avg: { readonly field: FieldReference | null } }
);

/** One value for each aggregation, under its alias; a row that lacks a field of any of them counts in none. */
export function aggregated(rows: readonly Row[], aggregations: readonly Aggregation[]): Record<string, Value> {
  if (aggregations.length < 1 || aggregations.length > 5) throw invalidArgument('an aggregation query needs 1 to 5 aggregations');
  const operands = aggregations.flatMap((aggregation) => operandsOf(aggregation));
  const counted = rows.filter(({ document }) => operands.every((operand) => operand(document) !== undefined));
  const results: Record<string, Value> = {};
  for (const [index, aggregation] of aggregations.entries()) {
    const alias = aggregation.alias || `field_${index + 1}`;
    if (Object.hasOwn(results, alias)) throw invalidArgument(`the alias "${alias}" is used twice`);
    results[alias] = aggregate(counted, aggregation);
  }
  return results;
}

function aggregate(rows: readonly Row[], aggregation: Aggregation): Value {
  switch (aggregation.operator) {
    case 'count':
      return integerOf(Math.min(rows.length, Number(aggregation.count.upTo?.value ?? Number.POSITIVE_INFINITY)));
    case 'sum':
      return sumOf(numbers(rows, fieldOf(aggregation.sum.field)));
    case 'avg': {
      const values = numbers(rows, fieldOf(aggregation.avg.field));
      return values.length === 0 ? nullOf() : doubleOf(values.reduce((total, value) => total + Number(numberOf(value)), 0) / values.length);
    }
    default:
      throw invalidArgument('an aggregation holds no operator');
  }
}

/** The fields that an index has to hold besides those of the query. */
export function aggregatedFields(aggregations: readonly Aggregation[]): string[] {
  return aggregations.flatMap((aggregation) => {
    const field = aggregation.operator === 'sum' ? aggregation.sum.field : aggregation.operator === 'avg' ? aggregation.avg.field : null;
    return field?.fieldPath ?? [];
  });
}

function operandsOf(aggregation: Aggregation): Operand[] {
  if (aggregation.operator === 'sum') return [fieldOf(aggregation.sum.field)];
  return aggregation.operator === 'avg' ? [fieldOf(aggregation.avg.field)] : [];
}

function fieldOf(field: FieldReference | null): Operand {
  if (!field) throw invalidArgument('an aggregation needs a field');
  return operandOf(field.fieldPath);
}

/** What is no number does not count. */
function numbers(rows: readonly Row[], operand: Operand): Value[] {
  return rows.map(({ document }) => operand(document)).filter((value) => value !== undefined && isNumber(value)) as Value[];
}

/** An integer while only integers are added and they fit; a double otherwise. */
function sumOf(values: readonly Value[]): Value {
  if (values.every((value) => value.valueType === 'integerValue')) {
    const total = values.reduce((sum, value) => sum + BigInt(numberOf(value)), 0n);
    if (BigInt.asIntN(64, total) === total) return integerOf(total);
  }
  return doubleOf(values.reduce((total, value) => total + Number(numberOf(value)), 0));
}
