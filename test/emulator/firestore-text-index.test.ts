import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/emulator/faults.ts';
import { createDocuments, type StoredDocument } from '../../src/emulator/firestore/documents.ts';
import { planQuery, runQuery, type StructuredQuery } from '../../src/emulator/firestore/query.ts';
import type { Fields } from '../../src/emulator/firestore/values.ts';

const parent = 'projects/p/databases/(default)/documents';
const text = (stringValue: string) => ({ valueType: 'stringValue', stringValue }) as const;
const document = (id: number, fields: Fields, updatedAtMicros = 0): StoredDocument => ({
  ...{ name: `${parent}/c/${id}`, fields, createdAtMicros: 0, updatedAtMicros },
});
const equal = (fieldPath: string, value: string) =>
  ({ filterType: 'fieldFilter', fieldFilter: { field: { fieldPath }, op: 'EQUAL', value: text(value) } }) as const;
const where = (op: string, ...filters: ReturnType<typeof equal>[]): StructuredQuery => ({
  ...{
    select: null,
    from: [{ collectionId: 'c', allDescendants: false }],
    orderBy: [],
    startAt: null,
    endAt: null,
    offset: 0,
    limit: null,
  },
  ...{ where: { filterType: 'compositeFilter', compositeFilter: { op, filters } }, findNearest: null },
});
const queries = [
  where('AND', equal('colour', 'red')),
  where('AND', equal('colour', 'red'), equal('size', 'small')),
  where('OR', equal('colour', 'red'), equal('size', 'small')),
  where('AND', equal('colour', 'none')),
  where('AND', equal('nested.colour', 'red')),
];

describe('a query by the texts of fields', () => {
  test('finds what a look at every document finds, while documents come, change and go', () => {
    const random = seededRandom(1);
    const documents = createDocuments();
    const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T;
    const draw = (): Fields => ({
      ...(random() < 0.8 && { colour: random() < 0.1 ? { valueType: 'nullValue', nullValue: 'NULL_VALUE' } : text(pick(['red', 'blue'])) }),
      size: text(pick(['small', 'large'])),
      nested: { valueType: 'mapValue', mapValue: { fields: { colour: text(pick(['red', 'blue'])) } } },
    });
    for (let step = 1; step <= 600; step++) {
      const id = Math.floor(random() * 300);
      const before = documents.get(`${parent}/c/${id}`);
      const after = random() < 0.2 ? undefined : document(id, draw(), step);
      documents.apply([{ name: `${parent}/c/${id}`, before, after }], step, false);
      if (step % 20 !== 0) continue;
      for (const query of queries) {
        const plan = planQuery(parent, query);
        const names = (candidates: Iterable<StoredDocument>) => runQuery(plan, candidates).rows.map((row) => row.document.name);
        expect(names(documents.scan(plan.scope, plan.equalities))).toEqual(names(documents.scan(plan.scope)));
      }
    }
    expect(documents.count()).toBeGreaterThan(150);
  });

  test('looks at those alone that hold the rarest text', () => {
    const documents = createDocuments(Array.from({ length: 200 }, (_, id) => document(id, { colour: text('red'), size: text(`${id}`) })));
    const plan = planQuery(parent, where('AND', equal('colour', 'red'), equal('size', '7')));
    expect([...documents.scan(plan.scope, plan.equalities)].map(({ name }) => name)).toEqual([`${parent}/c/7`]);
  });
});
