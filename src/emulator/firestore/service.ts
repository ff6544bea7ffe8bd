import type { Server } from '@grpc/grpc-js';
import { addService, type CallParts, readProtos, serviceOf } from '../grpc.ts';
import { createDatabases } from './databases.ts';
import { checkIndexes } from './index-definitions.ts';
import { createPlanner } from './indexes.ts';
import { createInspection, type Inspection } from './inspection.ts';
import { createListens } from './listen.ts';
import { readMethods } from './read-methods.ts';
import { sweepExpired, type TtlPolicy } from './ttl.ts';
import { writeMethods } from './write-methods.ts';

export type FirestoreEmulator = Inspection & {
  register(server: Server): void;
  close(): void;
  /**
   * As on a fresh start, of one database or of all: no document and no transaction is left, what was kept of them is deleted, and
   * open streams end.
   */
  reset(database?: string): void;
  /** What is listened to: the documents or the collection of each target. */
  openListens(): readonly string[];
  /** Ends every open stream with UNAVAILABLE, as the service does now and then; clients open new ones and go on. */
  endStreams(): void;
  /**
   * Deletes what has expired by these policies, in all databases, and returns how many documents went; until then they are read and
   * queried. Without policies it goes by those of `indexes`.
   */
  sweep(policies?: readonly TtlPolicy[]): Promise<number>;
};

export type FirestoreOptions = CallParts & {
  /** How long a plain write waits for transactions that have read what it changes. */
  readonly lockTimeoutMs?: number;
  /** The content of a `firestore.indexes.json`, checked at the start: with it a query that production would have no index for is refused. */
  readonly indexes?: unknown;
};

/** @throws Error that names the entry of `indexes` which is wrong */
export function createFirestoreEmulator({ lockTimeoutMs = 20_000, indexes, ...parts }: FirestoreOptions): FirestoreEmulator {
  const databases = createDatabases({ ...parts, lockTimeoutMs });
  const definitions = indexes === undefined ? undefined : checkIndexes(indexes);
  const planned = createPlanner(definitions);
  const listens = createListens({ databases, calls: parts, planned });
  const policiesOfIndexes = (definitions?.fieldOverrides ?? [])
    .filter(({ ttl }) => ttl)
    .map(({ collectionGroup, fieldPath }) => ({ collectionGroup, field: fieldPath }));
  return {
    ...createInspection(databases),
    register: (server) =>
      addService(server, serviceOf(readProtos('@google-cloud/firestore', 'v1.json'), 'google.firestore.v1.Firestore'), {
        ...readMethods(databases, parts, planned),
        ...writeMethods(databases, parts),
        Listen: listens.open,
      }),
    close() {
      listens.end();
      databases.close();
    },
    reset(database) {
      listens.end();
      databases.reset(database);
    },
    openListens: listens.targets,
    endStreams: listens.end,
    async sweep(policies = policiesOfIndexes) {
      let swept = 0;
      for (const [name, database] of databases.known())
        for (const policy of policies) swept += await sweepExpired(name, database, policy, parts.time.nowMs());
      await parts.journal.saved();
      return swept;
    },
  };
}
