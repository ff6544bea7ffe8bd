import type { StoredDocument } from './documents.ts';

/** A field that must hold this text. */
export type TextEquality = { readonly field: string; readonly text: string };

/** The documents of a collection by the texts that their fields hold; of each field from the first query on that asks for it. */
export type TextIndex = {
  /** Few documents, among them all that fulfil the equalities; `undefined` where all have to be looked at. */
  candidates(equalities: readonly TextEquality[]): Iterable<StoredDocument> | undefined;
  replace(before: StoredDocument | undefined, after: StoredDocument | undefined): void;
};

/** So few are looked at as fast as found. */
const fewDocuments = 100;

export function createTextIndex(documents: ReadonlyMap<string, StoredDocument>): TextIndex {
  const fields = new Map<string, Map<string, Map<string, StoredDocument>>>();
  const none: ReadonlyMap<string, StoredDocument> = new Map();

  const put = (texts: Map<string, Map<string, StoredDocument>>, field: string, document: StoredDocument) => {
    const text = textAt(document, field);
    if (text === undefined) return;
    const holders = texts.get(text) ?? new Map<string, StoredDocument>();
    texts.set(text, holders);
    holders.set(document.name, document);
  };
  const take = (texts: Map<string, Map<string, StoredDocument>>, field: string, document: StoredDocument) => {
    const text = textAt(document, field);
    const holders = text === undefined ? undefined : texts.get(text);
    if (text === undefined || !holders) return;
    holders.delete(document.name);
    if (holders.size === 0) texts.delete(text);
  };
  const textsOf = (field: string) => {
    const known = fields.get(field);
    if (known) return known;
    const texts = new Map<string, Map<string, StoredDocument>>();
    for (const document of documents.values()) put(texts, field, document);
    fields.set(field, texts);
    return texts;
  };

  return {
    candidates(equalities) {
      if (equalities.length === 0 || documents.size < fewDocuments) return undefined;
      const found = equalities.map(({ field, text }) => textsOf(field).get(text) ?? none);
      return found.reduce((fewest, holders) => (holders.size < fewest.size ? holders : fewest)).values();
    },
    replace(before, after) {
      for (const [field, texts] of fields) {
        if (before) take(texts, field, before);
        if (after) put(texts, field, after);
      }
    },
  };
}

function textAt({ fields }: StoredDocument, field: string): string | undefined {
  const value = Object.hasOwn(fields, field) ? fields[field] : undefined;
  return value?.valueType === 'stringValue' ? value.stringValue : undefined;
}
