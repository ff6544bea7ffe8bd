import type { VersionedDocuments } from '../dedup/versioned.ts';

/** Documents of this process alone, gone with it: for tests. */
export function memoryVersionedDocuments<D extends object>(): VersionedDocuments<D> {
  const documents = new Map<string, { readonly data: D; readonly version: string }>();
  let versions = 0;
  return {
    load: async (id) => structuredClone(documents.get(id)),
    save: async (id, data, expected) => {
      if ((documents.get(id)?.version ?? 'absent') !== expected) return 'conflict';
      documents.set(id, { data: structuredClone(data), version: String(++versions) });
      return 'saved';
    },
  };
}
