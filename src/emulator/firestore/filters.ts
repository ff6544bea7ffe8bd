import { invalidArgument } from '../grpc.ts';
import type { StoredDocument } from './documents.ts';
import { fieldAt } from './fields.ts';
import { nameField, parseFieldPath } from './paths.ts';
import type { TextEquality } from './text-index.ts';
import { compareValues, equalValues, isNaNValue, referenceOf, typeOrder, type Value } from './values.ts';

export type FieldReference = { readonly fieldPath: string };

/** A `StructuredQuery.Filter` as it arrives. */
export type Filter =
  | { readonly filterType: 'compositeFilter'; readonly compositeFilter: { readonly op: string; readonly filters: readonly Filter[] } }
  | {
      readonly filterType: 'fieldFilter';
      readonly fieldFilter: { readonly field: FieldReference | null; readonly op: string; readonly value: Value | null };
    }
  | { readonly filterType: 'unaryFilter'; readonly unaryFilter: { readonly field: FieldReference | null; readonly op: string } };

export type Predicate = (document: StoredDocument) => boolean;

/** Reads what a path of a query stands for: a field, or the document's own name. */
export type Operand = (document: StoredDocument) => Value | undefined;

export function operandOf(fieldPath: string): Operand {
  if (fieldPath === nameField) return (document) => referenceOf(document.name);
  const path = parseFieldPath(fieldPath);
  return (document) => fieldAt(document.fields, path);
}

/** A filter as a function. */
export type CompiledFilter = {
  readonly test: Predicate;
  /** The fields it bounds by an inequality: they decide the order of the rows. */
  readonly inequalities: readonly string[];
  /** Texts that every document holds that it lets through: by these it is found. */
  readonly equalities: readonly TextEquality[];
};

export function compileFilter(filter: Filter | null): CompiledFilter {
  if (!filter) return { test: () => true, inequalities: [], equalities: [] };
  switch (filter.filterType) {
    case 'compositeFilter':
      return compileComposite(filter.compositeFilter.op, filter.compositeFilter.filters.map(compileFilter));
    case 'unaryFilter':
      return compileUnary(filter.unaryFilter);
    case 'fieldFilter':
      return compileField(filter.fieldFilter);
    default:
      throw invalidArgument('a filter holds no condition');
  }
}

function compileComposite(op: string, parts: readonly CompiledFilter[]): CompiledFilter {
  if (parts.length === 0) throw invalidArgument('a composite filter holds no filters');
  const inequalities = parts.flatMap((part) => part.inequalities);
  const equalities = parts.flatMap((part) => part.equalities);
  if (op === 'AND') return { inequalities, equalities, test: (document) => parts.every(({ test }) => test(document)) };
  if (op === 'OR') return { inequalities, equalities: [], test: (document) => parts.some(({ test }) => test(document)) };
  throw invalidArgument(`composite operator ${op} is not known`);
}

const nullValue: Value = { valueType: 'nullValue', nullValue: 'NULL_VALUE' };
const nanValue: Value = { valueType: 'doubleValue', doubleValue: Number.NaN };
const unaryOperators = {
  IS_NULL: { op: 'EQUAL', value: nullValue },
  IS_NAN: { op: 'EQUAL', value: nanValue },
  IS_NOT_NULL: { op: 'NOT_EQUAL', value: nullValue },
  IS_NOT_NAN: { op: 'NOT_EQUAL', value: nanValue },
} as const;

function compileUnary({ field, op }: { field: FieldReference | null; op: string }): CompiledFilter {
  const operator = Object.hasOwn(unaryOperators, op) ? unaryOperators[op as keyof typeof unaryOperators] : undefined;
  if (!operator) throw invalidArgument(`unary operator ${op} is not known`);
  return compileField({ field, ...operator });
}

const inequalityOperators = new Set(['LESS_THAN', 'LESS_THAN_OR_EQUAL', 'GREATER_THAN', 'GREATER_THAN_OR_EQUAL', 'NOT_EQUAL', 'NOT_IN']);

function compileField(filter: { field: FieldReference | null; op: string; value: Value | null }): CompiledFilter {
  const { field, op, value } = filter;
  if (!field || !value?.valueType) throw invalidArgument('a field filter needs a field and a value');
  if (field.fieldPath === nameField) checkNames(op, value);
  const accepts = comparison(op, value);
  const operand = operandOf(field.fieldPath);
  return {
    inequalities: inequalityOperators.has(op) ? [field.fieldPath] : [],
    equalities: op === 'EQUAL' ? textEquality(field.fieldPath, value) : [],
    // Without the field there is no index entry, so no filter finds the document.
    test: (document) => {
      const held = operand(document);
      return held !== undefined && accepts(held);
    },
  };
}

function textEquality(fieldPath: string, value: Value): TextEquality[] {
  if (fieldPath === nameField || value.valueType !== 'stringValue') return [];
  const [field, ...below] = parseFieldPath(fieldPath);
  return field === undefined || below.length > 0 ? [] : [{ field, text: value.stringValue }];
}

function checkNames(op: string, value: Value): void {
  const names = op === 'IN' || op === 'NOT_IN' ? choicesOf(op, value) : [value];
  for (const name of names) {
    if (name.valueType !== 'referenceValue') throw invalidArgument(`a filter on ${nameField} needs a document reference`);
  }
}

/** Only values of the same type lie in a range, and NaN in none; `!=` and `not-in` find every other type, but never null. */
function comparison(op: string, wanted: Value): (held: Value) => boolean {
  const order = typeOrder(wanted);
  const inRange = (fits: (compared: number) => boolean) => (held: Value) =>
    typeOrder(held) === order && !isNaNValue(held) && fits(compareValues(held, wanted));
  switch (op) {
    case 'EQUAL':
      return (held) => equalValues(held, wanted);
    case 'LESS_THAN':
      return inRange((compared) => compared < 0);
    case 'LESS_THAN_OR_EQUAL':
      return inRange((compared) => compared <= 0);
    case 'GREATER_THAN':
      return inRange((compared) => compared > 0);
    case 'GREATER_THAN_OR_EQUAL':
      return inRange((compared) => compared >= 0);
    case 'NOT_EQUAL':
      return (held) => held.valueType !== 'nullValue' && !equalValues(held, wanted);
    case 'ARRAY_CONTAINS':
      return (held) => itemsOf(held).some((item) => equalValues(item, wanted));
    case 'IN':
    case 'NOT_IN':
    case 'ARRAY_CONTAINS_ANY':
      return membership(op, choicesOf(op, wanted));
    default:
      throw invalidArgument(`filter operator ${op} is not known`);
  }
}

function membership(op: 'IN' | 'NOT_IN' | 'ARRAY_CONTAINS_ANY', choices: readonly Value[]): (held: Value) => boolean {
  const chosen = (held: Value) => choices.some((choice) => equalValues(held, choice));
  if (op === 'IN') return (held) => held.valueType !== 'nullValue' && chosen(held);
  if (op === 'ARRAY_CONTAINS_ANY') return (held) => itemsOf(held).some(chosen);
  const neverMatches = choices.some((choice) => choice.valueType === 'nullValue');
  return (held) => !neverMatches && held.valueType !== 'nullValue' && !chosen(held);
}

function choicesOf(op: string, value: Value): readonly Value[] {
  const choices = itemsOf(value);
  const limit = op === 'NOT_IN' ? 10 : 30;
  if (choices.length === 0 || choices.length > limit)
    throw invalidArgument(`${op} has ${choices.length} values; it needs an array of 1 to ${limit}`);
  return choices;
}

function itemsOf(value: Value): readonly Value[] {
  return value.valueType === 'arrayValue' ? value.arrayValue.values : [];
}
