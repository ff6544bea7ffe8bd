import type { Journal } from '../journal.ts';
import type { Change, StoredDocument } from './documents.ts';
import { databaseOf } from './paths.ts';
import type { CommitResponse } from './transactions.ts';

/** What the commit of a transaction answers when it is repeated, and until when it is. */
export type KeptOutcome = { readonly id: string; readonly response: CommitResponse; readonly forgetAtMs: number };

/** One database as it was when the process before ended. */
export type KeptDatabase = {
  readonly name: string;
  /** The latest instant that a commit has named. */
  readonly committedAtMicros: number;
  readonly documents: readonly StoredDocument[];
  /** The first to be forgotten first. */
  readonly outcomes: readonly KeptOutcome[];
};

/** What one database notes of itself. */
export type DatabaseJournal = {
  commit(changes: Iterable<Change>, committedAtMicros: number): void;
  remember(outcome: KeptOutcome): void;
  forget(transactionId: string): void;
  /** Everything but the outcomes, given what documents there are. */
  erase(documents: Iterable<StoredDocument>): void;
};

const kinds = { databases: 'firestore databases', documents: 'firestore documents', outcomes: 'firestore outcomes' } as const;

type OutcomeRecord = KeptOutcome & { readonly database: string };

export function databaseJournal(journal: Journal, database: string): DatabaseJournal {
  return {
    commit(changes, committedAtMicros) {
      journal.put(kinds.databases, database, committedAtMicros);
      for (const { name, before, after } of changes) {
        if (after) journal.put(kinds.documents, name, after);
        else if (before) journal.delete(kinds.documents, name);
      }
    },
    remember: (outcome) => journal.put(kinds.outcomes, outcome.id, { ...outcome, database } satisfies OutcomeRecord),
    forget: (transactionId) => journal.delete(kinds.outcomes, transactionId),
    erase(documents) {
      journal.delete(kinds.databases, database);
      for (const { name } of documents) journal.delete(kinds.documents, name);
    },
  };
}

export function keptDatabases(journal: Journal): KeptDatabase[] {
  const documents = Map.groupBy(valuesOf<StoredDocument>(journal, kinds.documents), ({ name }) => databaseOf(name));
  const outcomes = Map.groupBy(valuesOf<OutcomeRecord>(journal, kinds.outcomes), ({ database }) => database);
  return [...journal.load<number>(kinds.databases)].map(([name, committedAtMicros]) => ({
    name,
    committedAtMicros,
    documents: documents.get(name) ?? [],
    outcomes: (outcomes.get(name) ?? []).sort((left, right) => left.forgetAtMs - right.forgetAtMs),
  }));
}

function* valuesOf<Value>(journal: Journal, kind: string): Iterable<Value> {
  for (const [, value] of journal.load<Value>(kind)) yield value;
}
