import { afterAll, describe } from 'vitest';
import { realTime } from '../../src/emulator/time.ts';
import { embeddedFirestore, firestoreTargets } from './firestore-targets.ts';
import { fuzzService, takesEmptyRequests } from './fuzz-service.ts';
import { wireService } from './wire-client.ts';

// Plain writes wait for the transactions that the requests before left open.
const embedded = await embeddedFirestore(realTime(), { lockTimeoutMs: 20 });
afterAll(embedded.stop);
const { client, methods, ask } = wireService('firestore', embedded.target.address);

const database = 'projects/fuzz/databases/(default)';
const root = `${database}/documents`;
const documents = ['c/a', 'c/b', 'c/a/d/e', 'c/missing'].map((path) => `${root}/${path}`);
const fields = ['a', 'm', 'm.x', '`a.b`'];

fuzzService({
  name: 'Firestore',
  client,
  methods,
  plausible: {
    '': ['a', 'm', ...documents],
    database: [database],
    parent: [root, root, root, ...documents],
    name: documents,
    document: documents,
    documents,
    delete: documents,
    referenceValue: documents,
    collectionId: ['c', 'd'],
    documentId: ['', 'new', 'a'],
    fieldPath: [...fields, ...fields, '__name__', 'a..b', 'm.`', '__x__'],
    fieldPaths: [...fields, ...fields, '__name__', 'm.'],
    'fields.key': ['a', 'm', 'x', 'value'],
    alias: ['', 'n', '__x__'],
    pageToken: ['', 'Yw'],
    orderBy: [''],
    structuredQuery: [],
    structuredAggregationQuery: [],
    from: [],
    operation: [],
    valueType: [],
    filterType: [],
    transformType: [],
    operator: [],
    targetType: [],
    targetChange: [],
    'Document.name': ['', '', ...documents],
    aggregations: [],
    field: [],
    value: [],
    writes: [],
  },
  async prepare() {
    embedded.reset();
    const stored = { a: { integerValue: '1' }, m: { mapValue: { fields: { x: { stringValue: 'y' } } } } };
    await ask('Commit', { database, writes: documents.slice(0, 3).map((name) => ({ update: { name, fields: stored } })) });
  },
  live: () => ask('ListCollectionIds', { parent: root }),
  alsoAllowed: ['ABORTED'],
});

// One for all: a suite of Google's emulator would hold no test but in the conformance run.
describe('Firestore, empty requests', () => {
  for (const target of firestoreTargets(embedded)) takesEmptyRequests(target, methods, { differs: 'answers UNKNOWN to ExecutePipeline' });
});
