import type { Server } from '@grpc/grpc-js';
import type { Faults } from '../faults.ts';
import { addService, invalidArgument, notFound, RpcError, readProtos, serviceOf, unary, unimplemented } from '../grpc.ts';
import type { Time } from '../time.ts';
import { type Aggregation, aggregated } from './aggregations.ts';
import { type Consistency, createDatabase, type Database, type TransactionOptions } from './database.ts';
import type { StoredDocument } from './documents.ts';
import { projected } from './fields.ts';
import { timestampOf } from './instants.ts';
import { type ListDocumentsRequest, listCollectionIds, listDocuments } from './listing.ts';
import { checkDatabase, checkDocument, checkId, checkParent, databaseOf, type FieldPath, parseStoredPath } from './paths.ts';
import { planQuery, type StructuredQuery } from './query.ts';
import { streaming } from './streaming.ts';
import { targetOf, type Write, type WriteResult } from './writes.ts';

export type FirestoreEmulator = {
  register(server: Server): void;
  close(): void;
  /** How many documents all databases hold. */
  documents(): number;
  /** How many commits wait for a transaction that has read what they write. */
  waitingCommits(): number;
};

type Mask = { readonly fieldPaths: readonly string[] } | null;

/** @param parts.lockTimeoutMs how long a plain write waits for transactions that have read what it changes */
export function createFirestoreEmulator({
  time,
  faults,
  lockTimeoutMs = 20_000,
}: {
  time: Time;
  faults: Faults;
  lockTimeoutMs?: number;
}): FirestoreEmulator {
  const databases = new Map<string, Database>();
  const database = (name: string): Database => {
    const known = databases.get(checkDatabase(name));
    if (known) return known;
    const abortsNext = () => faults.roll('abort-transaction', { rpc: 'Firestore.Commit', resource: name }) !== undefined;
    const made = createDatabase({ name, time, lockTimeoutMs, abortsNext });
    databases.set(name, made);
    return made;
  };
  const databaseAbove = (parent: string): Database => {
    const name = databaseOf(parent);
    checkParent(name, parent);
    return database(name);
  };

  const handlers = {
    Commit: unary('Firestore.Commit', faults, (request: { database: string; writes: Write[]; transaction: Buffer }) =>
      database(request.database).commit(request.writes, request.transaction),
    ),

    BatchWrite: unary('Firestore.BatchWrite', faults, async (request: { database: string; writes: Write[] }) => {
      const written = database(request.database);
      const names = new Set(request.writes.map(targetOf));
      if (names.size < request.writes.length) throw invalidArgument('a document may be written only once in a BatchWrite');
      const answers = await Promise.all(request.writes.map((write) => writeAlone(written, write)));
      return { writeResults: answers.map(({ result }) => result), status: answers.map(({ code, message }) => ({ code, message })) };
    }),

    BeginTransaction: unary('Firestore.BeginTransaction', faults, (request: { database: string; options: TransactionOptions | null }) => ({
      transaction: database(request.database).begin(request.options),
    })),

    Rollback: unary('Firestore.Rollback', faults, (request: { database: string; transaction: Buffer }) => {
      if (request.transaction.length === 0) throw invalidArgument('a rollback needs a transaction');
      database(request.database).rollback(request.transaction);
      return {};
    }),

    GetDocument: unary('Firestore.GetDocument', faults, (request: Consistency & { name: string; mask: Mask }) => {
      const databaseName = databaseOf(request.name);
      checkDocument(databaseName, request.name);
      const answer = answerer(request.mask);
      const found = database(databaseName).read(request).get(request.name);
      if (!found) throw notFound(`Document "${request.name}" not found.`);
      return answer(found);
    }),

    ListDocuments: unary('Firestore.ListDocuments', faults, (request: Consistency & ListDocumentsRequest & { mask: Mask }) => {
      const listed = databaseAbove(request.parent);
      checkId(request.collectionId, request.parent);
      const answer = answerer(request.mask);
      const { items, nextPageToken } = listDocuments(listed.read(request), listed.documents, request);
      return { documents: items.map((item) => (typeof item === 'string' ? { name: item } : answer(item))), nextPageToken };
    }),

    ListCollectionIds: unary(
      'Firestore.ListCollectionIds',
      faults,
      (request: { parent: string; pageSize: number; pageToken: string; readTime: unknown }) => {
        if (request.readTime) throw unimplemented('read_time of ListCollectionIds');
        const { items, nextPageToken } = listCollectionIds(databaseAbove(request.parent).documents, request);
        return { collectionIds: items, nextPageToken };
      },
    ),

    BatchGetDocuments: streaming(
      'Firestore.BatchGetDocuments',
      faults,
      (request: Consistency & { database: string; documents: string[]; mask: Mask }) => {
        const queried = database(request.database);
        const names = new Set(request.documents);
        for (const name of names) checkDocument(request.database, name);
        const answer = answerer(request.mask);
        const { get, begun, readTime } = queried.read(request);
        const answers: unknown[] = begun.length > 0 ? [{ transaction: begun }] : [];
        for (const name of names) {
          const found = get(name);
          answers.push(found ? { found: answer(found), readTime } : { missing: name, readTime });
        }
        return answers;
      },
    ),

    RunQuery: streaming('Firestore.RunQuery', faults, (request: QueryRequest & { structuredQuery: StructuredQuery | null }) => {
      if (request.explainOptions) throw unimplemented('explain_options');
      if (!request.structuredQuery) throw invalidArgument('RunQuery needs a structured query');
      const queried = databaseAbove(request.parent);
      const plan = planQuery(request.parent, request.structuredQuery);
      const { begun, query, readTime } = queried.read(request);
      const { rows, skipped } = query(plan);
      const answer = answering(plan.select);
      const answers: Record<string, unknown>[] = rows.map(({ document }) => ({ document: answer(document), readTime }));
      // An empty result needs a read time too, or the client waits for one.
      if (answers.length === 0 || skipped > 0) answers.unshift({ readTime, skippedResults: skipped });
      if (begun.length > 0) answers.unshift({ transaction: begun });
      return answers;
    }),

    RunAggregationQuery: streaming('Firestore.RunAggregationQuery', faults, (request: AggregationRequest) => {
      if (request.explainOptions) throw unimplemented('explain_options');
      const { structuredQuery, aggregations } = request.structuredAggregationQuery ?? { structuredQuery: null, aggregations: [] };
      if (!structuredQuery) throw invalidArgument('RunAggregationQuery needs a structured query');
      const queried = databaseAbove(request.parent);
      const plan = planQuery(request.parent, structuredQuery);
      // Refused before the read begins a transaction that nobody would end.
      aggregated([], aggregations);
      const { begun, query, readTime } = queried.read(request);
      const answer = { result: { aggregateFields: aggregated(query(plan).rows, aggregations) }, readTime };
      return begun.length > 0 ? [{ transaction: begun }, answer] : [answer];
    }),
  };

  return {
    register: (server) =>
      addService(server, serviceOf(readProtos('@google-cloud/firestore', 'v1.json'), 'google.firestore.v1.Firestore'), handlers),
    close() {
      for (const { close } of databases.values()) close();
    },
    documents: () => sum([...databases.values()], ({ documents }) => documents.count()),
    waitingCommits: () => sum([...databases.values()], ({ waiting }) => waiting()),
  };
}

function sum<Item>(items: readonly Item[], count: (item: Item) => number): number {
  return items.reduce((total, item) => total + count(item), 0);
}

type QueryRequest = Consistency & { readonly parent: string; readonly explainOptions: unknown };
type AggregationRequest = QueryRequest & {
  readonly structuredAggregationQuery: { structuredQuery: StructuredQuery | null; aggregations: Aggregation[] } | null;
};

type WrittenAlone = { readonly result: Partial<WriteResult>; readonly code: number; readonly message: string };

async function writeAlone(database: Database, write: Write): Promise<WrittenAlone> {
  try {
    const [result = {}] = (await database.commit([write], Buffer.alloc(0))).writeResults;
    return { result, code: 0, message: '' };
  } catch (error) {
    if (error instanceof RpcError) return { result: {}, code: error.code, message: error.message };
    throw error;
  }
}

function answerer(mask: Mask) {
  return answering(mask?.fieldPaths.map(parseStoredPath));
}

/** A document as it goes on the wire. */
function answering(select: readonly FieldPath[] | undefined) {
  return ({ name, fields, createdAtMicros, updatedAtMicros }: StoredDocument) => ({
    name,
    fields: select ? projected(fields, select) : fields,
    createTime: timestampOf(createdAtMicros),
    updateTime: timestampOf(updatedAtMicros),
  });
}
