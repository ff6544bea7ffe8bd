import { type CallParts, invalidArgument, notFound, unary, unimplemented } from '../grpc.ts';
import { type Aggregation, aggregated, aggregatedFields } from './aggregations.ts';
import { answering, type Mask, masked } from './answers.ts';
import type { Consistency } from './database.ts';
import type { Databases } from './databases.ts';
import type { Planner } from './indexes.ts';
import { type ListDocumentsRequest, listCollectionIds, listDocuments, type PartitionRequest, partitionPoints } from './listing.ts';
import { checkDocument, checkId, databaseOf } from './paths.ts';
import type { StructuredQuery } from './query.ts';
import { streaming } from './streaming.ts';
import { referenceOf } from './values.ts';

type QueryRequest = Consistency & { readonly parent: string; readonly explainOptions: unknown };
type AggregationRequest = QueryRequest & {
  readonly structuredAggregationQuery: { structuredQuery: StructuredQuery | null; aggregations: Aggregation[] } | null;
};

export function readMethods(databases: Databases, parts: CallParts, planned: Planner) {
  return {
    GetDocument: unary('Firestore.GetDocument', parts, (request: Consistency & { name: string; mask: Mask | null }) => {
      const databaseName = databaseOf(request.name);
      checkDocument(databaseName, request.name);
      const answer = masked(request.mask);
      const found = databases.named(databaseName).read(request).get(request.name);
      if (!found) throw notFound(`Document "${request.name}" not found.`);
      return answer(found);
    }),

    ListDocuments: unary('Firestore.ListDocuments', parts, (request: Consistency & ListDocumentsRequest & { mask: Mask | null }) => {
      const listed = databases.above(request.parent);
      checkId(request.collectionId, request.parent);
      const answer = masked(request.mask);
      const { items, nextPageToken } = listDocuments(listed.read(request), listed.documents, request);
      return { documents: items.map((item) => (typeof item === 'string' ? { name: item } : answer(item))), nextPageToken };
    }),

    ListCollectionIds: unary(
      'Firestore.ListCollectionIds',
      parts,
      (request: { parent: string; pageSize: number; pageToken: string; readTime: unknown }) => {
        if (request.readTime) throw unimplemented('read_time of ListCollectionIds');
        const { items, nextPageToken } = listCollectionIds(databases.above(request.parent).documents, request);
        return { collectionIds: items, nextPageToken };
      },
    ),

    PartitionQuery: unary('Firestore.PartitionQuery', parts, (request: PartitionRequest) => {
      const { items, nextPageToken } = partitionPoints(databases.above(request.parent).read({ readTime: request.readTime }), request);
      return { partitions: items.map((name) => ({ values: [referenceOf(name)], before: true })), nextPageToken };
    }),

    BatchGetDocuments: streaming(
      'Firestore.BatchGetDocuments',
      parts,
      (request: Consistency & { database: string; documents: string[]; mask: Mask | null }) => {
        const queried = databases.named(request.database);
        const names = new Set(request.documents);
        for (const name of names) checkDocument(request.database, name);
        const answer = masked(request.mask);
        const { get, begun, readTime } = queried.read(request);
        const answers: unknown[] = begun.length > 0 ? [{ transaction: begun }] : [];
        for (const name of names) {
          const found = get(name);
          answers.push(found ? { found: answer(found), readTime } : { missing: name, readTime });
        }
        return answers;
      },
    ),

    RunQuery: streaming('Firestore.RunQuery', parts, (request: QueryRequest & { structuredQuery: StructuredQuery | null }) => {
      if (request.explainOptions) throw unimplemented('explain_options');
      if (!request.structuredQuery) throw invalidArgument('RunQuery needs a structured query');
      const queried = databases.above(request.parent);
      const plan = planned(request.parent, request.structuredQuery);
      const { begun, query, readTime } = queried.read(request);
      const { rows, skipped } = query(plan);
      const answer = answering(plan.select);
      const answers: Record<string, unknown>[] = rows.map(({ document }) => ({ document: answer(document), readTime }));
      // An empty result needs a read time too, or the client waits for one.
      if (answers.length === 0 || skipped > 0) answers.unshift({ readTime, skippedResults: skipped });
      if (begun.length > 0) answers.unshift({ transaction: begun });
      return answers;
    }),

    RunAggregationQuery: streaming('Firestore.RunAggregationQuery', parts, (request: AggregationRequest) => {
      if (request.explainOptions) throw unimplemented('explain_options');
      const { structuredQuery, aggregations } = request.structuredAggregationQuery ?? { structuredQuery: null, aggregations: [] };
      if (!structuredQuery) throw invalidArgument('RunAggregationQuery needs a structured query');
      const queried = databases.above(request.parent);
      const plan = planned(request.parent, structuredQuery, aggregatedFields(aggregations));
      // Refused before the read begins a transaction that nobody would end.
      aggregated([], aggregations);
      const { begun, query, readTime } = queried.read(request);
      const answer = { result: { aggregateFields: aggregated(query(plan).rows, aggregations) }, readTime };
      return begun.length > 0 ? [{ transaction: begun }, answer] : [answer];
    }),
  };
}
