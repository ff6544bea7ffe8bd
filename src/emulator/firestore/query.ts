import { invalidArgument, unimplemented } from '../grpc.ts';
import { inScope, type Scope, type StoredDocument } from './documents.ts';
import { compileFilter, type FieldReference, type Filter, type Operand, operandOf, type Predicate } from './filters.ts';
import { checkId, type FieldPath, nameField, parentOf, parseFieldPath } from './paths.ts';
import type { TextEquality } from './text-index.ts';
import { compareNames } from './text-order.ts';
import { compareValues, type Value } from './values.ts';

type Cursor = { readonly values: readonly Value[]; readonly before: boolean };

/** A `google.firestore.v1.StructuredQuery` as it arrives. */
export type StructuredQuery = {
  readonly select: { readonly fields: readonly FieldReference[] } | null;
  readonly from: readonly { readonly collectionId: string; readonly allDescendants: boolean }[];
  readonly where: Filter | null;
  readonly orderBy: readonly { readonly field: FieldReference | null; readonly direction: string }[];
  readonly startAt: Cursor | null;
  readonly endAt: Cursor | null;
  readonly offset: number;
  readonly limit: { readonly value: number } | null;
  readonly findNearest: unknown;
};

export type Order = { readonly fieldPath: string; readonly operand: Operand; readonly descending: boolean };

/** A document with what it is sorted by. */
export type Row = { readonly document: StoredDocument; readonly keys: readonly Value[] };

export type QueryPlan = {
  readonly scope: Scope;
  readonly equalities: readonly TextEquality[];
  /** Those that were asked for and those that follow from the query; the last one is by name. */
  readonly orders: readonly Order[];
  /** The document as a row of the result, before offset and limit; undefined where it is none. */
  rowOf(document: StoredDocument): Row | undefined;
  compare(left: Row, right: Row): number;
  readonly offset: number;
  readonly limit: number;
  /** The fields to answer with; all of them when absent. */
  readonly select: readonly FieldPath[] | undefined;
};

/** A query's rows, and the last document it had to look at: what is sorted after it cannot change the result. */
export type QueryResult = { readonly rows: readonly Row[]; readonly skipped: number; readonly last: Row | undefined };

/** @throws RpcError for a query that is malformed or not supported */
export function planQuery(parent: string, query: StructuredQuery): QueryPlan {
  if (query.findNearest) throw unimplemented('find_nearest (vector search)');
  const scope = scopeOf(parent, query.from);
  const { test, inequalities, equalities } = compileFilter(query.where);
  const orders = ordersOf(query.orderBy, inequalities);
  const limit = query.limit?.value ?? Number.POSITIVE_INFINITY;
  if (query.offset < 0 || limit < 0) throw invalidArgument(`offset is ${query.offset} and limit ${limit}; neither may be negative`);
  const within = withinCursors(orders, query);
  return {
    scope,
    equalities,
    orders,
    rowOf(document) {
      if (!test(document)) return undefined;
      const keys = keysOf(orders, document);
      if (!keys) return undefined;
      const row = { document, keys };
      return within(row) ? row : undefined;
    },
    compare: (left, right) => compareRows(orders, left, right),
    offset: query.offset,
    limit,
    select: query.select?.fields.length ? selected(query.select.fields) : undefined,
  };
}

export function runQuery(plan: QueryPlan, candidates: Iterable<StoredDocument>): QueryResult {
  const { offset, limit } = plan;
  const rows = firstRows(plan, candidates, offset + limit);
  const isFull = rows.length === offset + limit;
  return { rows: rows.slice(offset), skipped: Math.min(offset, rows.length), last: isFull ? rows.at(-1) : undefined };
}

/** Whether a document takes part in the result of a query, given the last row it looked at. */
export function takesPart({ scope, rowOf, compare }: QueryPlan, last: Row | undefined): Predicate {
  return (document) => {
    if (!inScope(scope, parentOf(document.name))) return false;
    const row = rowOf(document);
    return row !== undefined && (!last || compare(row, last) <= 0);
  };
}

/** Sorting thousands of rows for the first ten would cost more than all the rest. */
function firstRows(plan: QueryPlan, candidates: Iterable<StoredDocument>, count: number): Row[] {
  const rows: Row[] = [];
  const mayBeCut = count < 1_000;
  for (const document of candidates) {
    const row = plan.rowOf(document);
    if (!row) continue;
    if (!mayBeCut) rows.push(row);
    else insertSorted(rows, row, count, plan.compare);
  }
  return mayBeCut ? rows : rows.sort(plan.compare).slice(0, count);
}

function insertSorted(rows: Row[], row: Row, count: number, compare: QueryPlan['compare']): void {
  const last = rows.at(-1);
  if (rows.length >= count && (!last || compare(row, last) >= 0)) return;
  let low = 0;
  for (let high = rows.length; low < high; ) {
    const middle = (low + high) >> 1;
    const other = rows[middle];
    if (other && compare(row, other) > 0) low = middle + 1;
    else high = middle;
  }
  rows.splice(low, 0, row);
  if (rows.length > count) rows.pop();
}

function scopeOf(parent: string, from: StructuredQuery['from']): Scope {
  const [selector, ...others] = from;
  if (!selector || others.length > 0) throw invalidArgument('a query needs exactly one collection selector');
  if (selector.collectionId !== '') checkId(selector.collectionId, parent);
  return { parent, ...selector };
}

/** What the caller asked for, then the fields of inequalities, then the name, in the direction of the last order given. */
function ordersOf(orderBy: StructuredQuery['orderBy'], inequalities: readonly string[]): Order[] {
  const orders = orderBy.map(({ field, direction }) => {
    if (!field) throw invalidArgument('an order needs a field');
    return orderOf(field.fieldPath, direction === 'DESCENDING');
  });
  const descending = orders.at(-1)?.descending ?? false;
  for (const fieldPath of [...new Set(inequalities)].sort()) {
    if (fieldPath !== nameField && !orders.some((order) => order.fieldPath === fieldPath)) orders.push(orderOf(fieldPath, descending));
  }
  if (!orders.some((order) => order.fieldPath === nameField)) orders.push(orderOf(nameField, descending));
  return orders;
}

function orderOf(fieldPath: string, descending: boolean): Order {
  return { fieldPath, operand: operandOf(fieldPath), descending };
}

/** A document that lacks a field of the order is no row. */
function keysOf(orders: readonly Order[], document: StoredDocument): Value[] | undefined {
  const keys: Value[] = [];
  for (const { fieldPath, operand } of orders) {
    if (fieldPath === nameField) break;
    const key = operand(document);
    if (!key) return undefined;
    keys.push(key);
  }
  return keys;
}

function compareRows(orders: readonly Order[], left: Row, right: Row): number {
  for (const [index, { descending }] of orders.entries()) {
    const leftKey = left.keys[index];
    const rightKey = right.keys[index];
    const byOrder = leftKey && rightKey ? compareValues(leftKey, rightKey) : compareNames(left.document.name, right.document.name);
    if (byOrder !== 0) return descending ? -byOrder : byOrder;
  }
  return 0;
}

/** A cursor stands just before or just after the rows that begin with its values. */
function withinCursors(orders: readonly Order[], { startAt, endAt }: StructuredQuery): (row: Row) => boolean {
  for (const cursor of [startAt, endAt]) {
    if (cursor && cursor.values.length > orders.length) throw invalidArgument('a cursor holds more values than the query has orders');
    if (cursor?.values.some((value) => !value.valueType)) throw invalidArgument('a cursor holds an empty value');
  }
  const toCursor = (row: Row, { values }: Cursor) => {
    for (const [index, value] of values.entries()) {
      const order = orders[index];
      const held = order?.operand(row.document);
      if (!order || !held) continue;
      const byOrder = compareValues(held, value);
      if (byOrder !== 0) return order.descending ? -byOrder : byOrder;
    }
    return 0;
  };
  return (row) => {
    if (startAt && toCursor(row, startAt) < (startAt.before ? 0 : 1)) return false;
    return !endAt || toCursor(row, endAt) < (endAt.before ? 0 : 1);
  };
}

function selected(fields: readonly FieldReference[]): FieldPath[] {
  return fields.filter(({ fieldPath }) => fieldPath !== nameField).map(({ fieldPath }) => parseFieldPath(fieldPath));
}
