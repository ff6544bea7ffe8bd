import type { Change, Documents, StoredDocument } from './documents.ts';
import { type QueryPlan, type Row, runQuery, takesPart } from './query.ts';
import { touches } from './read-locks.ts';

/** What a listener sees of the database, kept up with the commits. */
export type View = {
  /** All of it; a document that is watched by its name and is not there counts as gone. */
  first(): ViewChange;
  /** What changes of it by a commit that has just been applied. */
  after(changes: readonly Change[]): ViewChange;
};

export type ViewChange = { readonly shown: readonly StoredDocument[]; readonly gone: readonly string[] };

const nothing: ViewChange = { shown: [], gone: [] };

export function documentsView(names: readonly string[], documents: Documents): View {
  const watched = new Set(names);
  return {
    first: () => partedBy([...watched].map((name) => [name, documents.get(name)])),
    after: (changes) => partedBy(changes.filter(({ name }) => watched.has(name)).map(({ name, after }) => [name, after])),
  };
}

function partedBy(found: readonly (readonly [name: string, document: StoredDocument | undefined])[]): ViewChange {
  return {
    shown: found.flatMap(([, document]) => document ?? []),
    gone: found.flatMap(([name, document]) => (document ? [] : name)),
  };
}

/** Without a limit each document stands for itself; with one, a document that leaves lets another one in. */
export function queryView(plan: QueryPlan, documents: Documents): View {
  return Number.isFinite(plan.limit) || plan.offset > 0 ? windowView(plan, documents) : openView(plan, documents);
}

function openView(plan: QueryPlan, documents: Documents): View {
  const matches = takesPart(plan, undefined);
  const held = new Set<string>();
  return {
    first() {
      const shown = runQuery(plan, documents.scan(plan.scope, plan.equalities)).rows.map(({ document }) => document);
      for (const { name } of shown) held.add(name);
      return { shown, gone: [] };
    },
    after(changes) {
      const shown = changes.flatMap(({ after }) => (after && matches(after) ? after : []));
      const stay = new Set(shown.map(({ name }) => name));
      const gone = changes.flatMap(({ name }) => (!stay.has(name) && held.delete(name) ? name : []));
      for (const name of stay) held.add(name);
      return { shown, gone };
    },
  };
}

function windowView(plan: QueryPlan, documents: Documents): View {
  let held: ReadonlyMap<string, StoredDocument> = new Map();
  let last: Row | undefined;
  const again = (): ViewChange => {
    const result = runQuery(plan, documents.scan(plan.scope, plan.equalities));
    const before = held;
    held = new Map(result.rows.map(({ document }) => [document.name, document]));
    last = result.last;
    return {
      shown: [...held.values()].filter((document) => before.get(document.name) !== document),
      gone: [...before.keys()].filter((name) => !held.has(name)),
    };
  };
  return {
    first: again,
    after(changes) {
      const takes = takesPart(plan, last);
      return changes.some((change) => touches(takes, change)) ? again() : nothing;
    },
  };
}
