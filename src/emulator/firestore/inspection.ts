import type { Database } from './database.ts';
import type { Databases } from './databases.ts';
import { checkDocument, databaseOf, idOf, parentOf, rootOf } from './paths.ts';
import { type PlainFields, plainFields } from './plain.ts';
import { compareNames } from './text-order.ts';

/** What tests read of the state. A path is `orders/7`, where only one database holds documents, or a name from `projects/` on. */
export type Inspection = {
  document(path: string): PlainFields | undefined;
  /** The documents of a collection by their ids, in the order of these. */
  collection(path: string): Readonly<Record<string, PlainFields>>;
  documentCount(): number;
  /** Transactions that have neither ended nor expired. */
  liveTransactions(): number;
  /** How many commits wait for a transaction that has read what they write. */
  waitingCommits(): number;
};

export function createInspection({ known }: Databases): Inspection {
  const total = (count: (database: Database) => number) => [...known().values()].reduce((sum, database) => sum + count(database), 0);
  /** The whole name. */
  const nameOf = (path: string): string => {
    if (path.startsWith('projects/')) return path;
    const filled = [...known()].filter(([, { documents }]) => documents.count() > 0).map(([name]) => name);
    if (filled.length > 1) throw new Error(`"${path}" may be in any of ${filled.join(', ')}: give its whole name`);
    return `${rootOf(filled[0] ?? 'projects/none/databases/none')}/${path}`;
  };
  return {
    document(path) {
      const name = nameOf(path);
      checkDocument(databaseOf(name), name);
      const found = known().get(databaseOf(name))?.documents.get(name);
      return found && plainFields(found.fields);
    },
    collection(path) {
      const name = nameOf(path);
      checkDocument(databaseOf(name), `${name}/any`);
      const scope = { parent: parentOf(name), collectionId: idOf(name), allDescendants: false };
      const found = [...(known().get(databaseOf(name))?.documents.scan(scope) ?? [])];
      found.sort((left, right) => compareNames(left.name, right.name));
      return Object.fromEntries(found.map((document) => [idOf(document.name), plainFields(document.fields)]));
    },
    documentCount: () => total(({ documents }) => documents.count()),
    liveTransactions: () => total(({ liveTransactions }) => liveTransactions()),
    waitingCommits: () => total(({ waiting }) => waiting()),
  };
}
