import { idOf, parentOf } from './paths.ts';
import { createTextIndex, type TextEquality, type TextIndex } from './text-index.ts';
import type { Fields } from './values.ts';

/** One version of a document; a change makes a new one. */
export type StoredDocument = {
  readonly name: string;
  readonly fields: Fields;
  readonly createdAtMicros: number;
  readonly updatedAtMicros: number;
};

/** What a commit does to one document. */
export type Change = {
  readonly name: string;
  readonly before: StoredDocument | undefined;
  readonly after: StoredDocument | undefined;
};

/** Where a query looks: one collection of the parent, or all of that id below it; an empty id means any. */
export type Scope = { readonly parent: string; readonly collectionId: string; readonly allDescendants: boolean };

export function inScope({ parent, collectionId, allDescendants }: Scope, collection: string): boolean {
  if (collectionId !== '' && !allDescendants) return collection === `${parent}/${collectionId}`;
  if (collectionId !== '' && idOf(collection) !== collectionId) return false;
  return allDescendants ? collection.startsWith(`${parent}/`) : parentOf(collection) === parent;
}

type Collection = {
  readonly documents: Map<string, StoredDocument>;
  readonly index: TextIndex;
  /** Versions that a snapshot may still see, oldest first, with the instant from which they no longer hold. */
  past: { readonly document: StoredDocument; readonly untilMicros: number }[];
};

export type Documents = {
  get(name: string): StoredDocument | undefined;
  /** All of a scope, or among them at least those that fulfil the equalities. */
  scan(scope: Scope, equalities?: readonly TextEquality[]): Iterable<StoredDocument>;
  /** The same two as of an instant, which must not lie before `knownSinceMicros()`. */
  getAt(name: string, atMicros: number): StoredDocument | undefined;
  scanAt(scope: Scope, atMicros: number): Iterable<StoredDocument>;
  /** From this instant on every version is known. */
  knownSinceMicros(): number;
  /** With `keepPast` the versions before stay readable. */
  apply(changes: Iterable<Change>, commitAtMicros: number, keepPast: boolean): void;
  /** Drops the versions that no longer held at the instant; all of them without one. */
  forgetPast(untilMicros?: number): void;
  /** Ids of the collections right below a parent, those included that hold only documents of documents. */
  collectionIds(parent: string): string[];
  /** Names of the documents of a collection, those included that only lie above another one. */
  namesIn(collection: string): Set<string>;
  all(): Iterable<StoredDocument>;
  count(): number;
};

/** Those of before, whose earlier versions nobody knows. */
export function createDocuments(kept: readonly StoredDocument[] = [], keptAtMicros = 0): Documents {
  const collections = new Map<string, Collection>();
  let knownSinceMicros = keptAtMicros;

  const inCollections = (scope: Scope): Collection[] => {
    if (scope.collectionId !== '' && !scope.allDescendants) {
      const only = collections.get(`${scope.parent}/${scope.collectionId}`);
      return only ? [only] : [];
    }
    return [...collections].filter(([path]) => inScope(scope, path)).map(([, collection]) => collection);
  };
  const dropIfEmpty = (path: string, { documents, past }: Collection) => {
    if (documents.size === 0 && past.length === 0) collections.delete(path);
  };
  const applyOne = ({ name, before, after }: Change, commitAtMicros: number, keepPast: boolean) => {
    if (before === after) return;
    const path = parentOf(name);
    const collection = collections.get(path) ?? emptyCollection();
    collections.set(path, collection);
    if (before && keepPast) collection.past.push({ document: before, untilMicros: commitAtMicros });
    if (after) collection.documents.set(name, after);
    else collection.documents.delete(name);
    collection.index.replace(before, after);
    dropIfEmpty(path, collection);
  };

  for (const document of kept) applyOne({ name: document.name, before: undefined, after: document }, keptAtMicros, false);
  return {
    get: (name) => collections.get(parentOf(name))?.documents.get(name),
    *scan(scope, equalities = []) {
      for (const { documents, index } of inCollections(scope)) yield* index.candidates(equalities) ?? documents.values();
    },
    getAt(name, atMicros) {
      const collection = collections.get(parentOf(name));
      return collection && versionAt(collection, name, atMicros);
    },
    *scanAt(scope, atMicros) {
      for (const collection of inCollections(scope)) {
        const names = new Set(collection.documents.keys());
        for (const { document } of collection.past) names.add(document.name);
        for (const name of names) {
          const version = versionAt(collection, name, atMicros);
          if (version) yield version;
        }
      }
    },
    knownSinceMicros: () => knownSinceMicros,
    apply(changes, commitAtMicros, keepPast) {
      for (const change of changes) applyOne(change, commitAtMicros, keepPast);
      if (!keepPast) knownSinceMicros = commitAtMicros;
    },
    forgetPast(untilMicros = Number.POSITIVE_INFINITY) {
      for (const [path, collection] of collections) {
        if (collection.past.length === 0) continue;
        for (const version of collection.past) {
          if (version.untilMicros <= untilMicros) knownSinceMicros = Math.max(knownSinceMicros, version.untilMicros);
        }
        collection.past = collection.past.filter((version) => version.untilMicros > untilMicros);
        dropIfEmpty(path, collection);
      }
    },
    collectionIds(parent) {
      const ids = new Set<string>();
      for (const path of collections.keys()) {
        if (path.startsWith(`${parent}/`)) ids.add(path.slice(parent.length + 1).split('/', 1)[0] ?? '');
      }
      return [...ids];
    },
    namesIn(collection) {
      const names = new Set(collections.get(collection)?.documents.keys());
      for (const path of collections.keys()) {
        if (path.startsWith(`${collection}/`)) names.add(`${collection}/${path.slice(collection.length + 1).split('/', 1)[0]}`);
      }
      return names;
    },
    *all() {
      for (const { documents } of collections.values()) yield* documents.values();
    },
    count() {
      let documents = 0;
      for (const collection of collections.values()) documents += collection.documents.size;
      return documents;
    },
  };
}

function emptyCollection(): Collection {
  const documents = new Map<string, StoredDocument>();
  return { documents, index: createTextIndex(documents), past: [] };
}

function versionAt(collection: Collection, name: string, atMicros: number): StoredDocument | undefined {
  const replaced = collection.past.find(({ document, untilMicros }) => document.name === name && untilMicros > atMicros);
  const version = replaced ? replaced.document : collection.documents.get(name);
  return version && version.updatedAtMicros <= atMicros ? version : undefined;
}
