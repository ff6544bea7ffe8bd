import { afterAll, test } from 'vitest';
import { realTime } from '../../src/emulator/time.ts';
import { embeddedFirestore } from './firestore-targets.ts';
import { fuzzTimeoutMs } from './fuzz-service.ts';
import { picked, type Steps, walks } from './fuzz-walk.ts';
import { wireService } from './wire-client.ts';

// Plain writes wait for the transactions that the steps before left open.
const embedded = await embeddedFirestore(realTime(), { lockTimeoutMs: 10 });
afterAll(embedded.stop);
const { ask } = wireService('firestore', embedded.target.address);

const database = 'projects/walk/databases/(default)';
const root = `${database}/documents`;
const documents = ['c/a', 'c/b', 'c/c', 'c/a/d/e', 'other/a'].map((path) => `${root}/${path}`);
const values = [
  { integerValue: 1 },
  { doubleValue: Number.NaN },
  { stringValue: 'a' },
  { arrayValue: { values: [{ integerValue: 1 }] } },
  { mapValue: {} },
];
const conditions = [null, null, null, { exists: true }, { exists: false }];
const operators = ['EQUAL', 'LESS_THAN', 'GREATER_THAN_OR_EQUAL', 'NOT_EQUAL', 'ARRAY_CONTAINS'];

/** Transactions that may be over. */
const begun: Uint8Array[] = [];
/** One of them, or none. */
const transaction = (pick: number) => (begun.length === 0 || pick % 2 === 0 ? {} : { transaction: picked(begun, pick) });

const write = ([which, kind, value]: readonly [number, number, number]) => {
  const name = picked(documents, which);
  const currentDocument = picked(conditions, value);
  const fields = { a: picked(values, value), m: { mapValue: { fields: { x: picked(values, which) } } } };
  return picked(
    [
      { update: { name, fields } },
      { update: { name, fields }, updateMask: { fieldPaths: ['m.x', 'gone'] } },
      { update: { name }, updateMask: {}, updateTransforms: [{ fieldPath: 'a', increment: { integerValue: 1 } }] },
      { update: { name }, updateMask: {}, updateTransforms: [{ fieldPath: 'a', appendMissingElements: { values } }] },
      { delete: name },
    ].map((each) => ({ ...each, currentDocument })),
    kind,
  );
};
const query = ([, op, value]: readonly [number, number, number]) => ({
  from: [{ collectionId: picked(['c', 'd', 'other'], value), allDescendants: op % 2 === 0 }],
  where: { fieldFilter: { field: { fieldPath: picked(['a', 'm.x'], op) }, op: picked(operators, op), value: picked(values, value) } },
  limit: { value: value % 4 },
});

const steps: Steps = {
  commit: (picks) => ask('Commit', { database, writes: [write(picks)] }),
  commitTwo: ([a, b, c]) => ask('Commit', { database, writes: [write([a, b, c]), write([b, c, a])], ...transaction(a) }),
  batchWrite: ([a, b, c]) => ask('BatchWrite', { database, writes: [write([a, b, c])] }),
  async begin([kind]) {
    const options = picked([{ readWrite: {} }, { readOnly: {} }], kind);
    const answer = await ask('BeginTransaction', { database, options });
    for (const { transaction: id } of answer.messages) if (id instanceof Uint8Array) begun.push(id);
    return answer;
  },
  async end([which, kind, value]) {
    const id = begun.shift();
    if (!id) return undefined;
    if (kind % 2 === 0) return ask('Rollback', { database, transaction: id });
    return ask('Commit', { database, transaction: id, writes: [write([which, kind, value])] });
  },
  get: ([which, id]) => ask('GetDocument', { name: picked(documents, which), ...transaction(id) }),
  getAll: ([id]) => ask('BatchGetDocuments', { database, documents, ...transaction(id) }),
  list: ([id, showMissing]) =>
    ask('ListDocuments', { parent: root, collectionId: 'c', showMissing: showMissing % 2 === 0, ...transaction(id) }),
  collections: ([which]) => ask('ListCollectionIds', { parent: picked([root, ...documents], which) }),
  query: (picks) => ask('RunQuery', { parent: root, structuredQuery: query(picks), ...transaction(picks[0]) }),
  count: (picks) =>
    ask('RunAggregationQuery', {
      parent: root,
      structuredAggregationQuery: { structuredQuery: query(picks), aggregations: [{ count: {} }, { sum: { field: { fieldPath: 'a' } } }] },
    }),
};

test('a walk of 300 calls to Firestore meets no defect', { timeout: fuzzTimeoutMs }, () =>
  walks(steps, async () => {
    embedded.reset();
    begun.length = 0;
  }, ['ABORTED']),
);
