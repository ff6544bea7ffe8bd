import { afterAll, beforeAll, describe } from 'vitest';
import { readProtos } from '../../src/emulator/grpc.ts';
import { asking, prepare, type Refused, refuses, type Taken, takes } from './bad-input.ts';
import { embeddedFirestore, firestoreTargets } from './firestore-targets.ts';
import { methodsOf, wireClient } from './wire-client.ts';

const embedded = await embeddedFirestore();
afterAll(embedded.stop);

const methods = methodsOf(readProtos('@google-cloud/firestore', 'v1.json'), 'google.firestore.v1.Firestore');
const database = `projects/ptk-bad-${process.pid}/databases/(default)`;
const root = `${database}/documents`;
const [there, missing] = [`${root}/c/there`, `${root}/c/missing`];

const text = (bytes: number) => ({ stringValue: 'a'.repeat(bytes) });
/** So many bytes, the first two of one character. */
const named = (bytes: number) => `é${'a'.repeat(bytes - 2)}`;
const nested = (depth: number): object => (depth === 0 ? text(1) : { mapValue: { fields: { m: nested(depth - 1) } } });
const arrays = (depth: number): object =>
  depth === 0 ? text(1) : { arrayValue: { values: [{ mapValue: { fields: { m: arrays(depth - 1) } } }] } };

const committed = (...writes: object[]) => ({ method: 'Commit', request: { database, writes } });
const written = (name: string, fields: object = {}, more: object = {}) => ({ update: { name, fields }, ...more });
const stored = (field: string, value: object) => committed(written(`${root}/c/limits`, { [field]: value }));
/** A document of so many bytes: 32 and its name of 23, two names of 2, two texts with one byte more than they hold. */
const sized = (bytes: number) => committed(written(`${root}/c/size`, { a: text(1_000_000), b: text(bytes - 1_000_061) }));
/** Writes whose fields take so many bytes in all. */
const payload = (bytes: number) =>
  committed(
    ...[...Array<number>(10).fill(1_000_000), bytes - 10_000_000].map((each, index) =>
      written(`${root}/c/payload${index}`, { a: text(each - 3) }),
    ),
  );
const increments = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ fieldPath: `f${index}`, increment: { integerValue: 1 } }));
const updateTime = { seconds: 1_000, nanos: 1_000 };

const smallMessages = { differs: 'answers RESOURCE_EXHAUSTED to messages above 4 MiB' };
const anyTransforms = { differs: 'takes any number' };

const refused: Refused[] = [
  {
    what: 'the create of a document that exists',
    ...committed(written(there, {}, { currentDocument: { exists: false } })),
    code: 'ALREADY_EXISTS',
    says: [there],
  },
  {
    what: 'the update of a missing document',
    ...committed(written(missing, {}, { currentDocument: { exists: true } })),
    code: 'NOT_FOUND',
    says: [missing],
  },
  {
    what: 'the update of another version',
    ...committed(written(there, {}, { currentDocument: { updateTime } })),
    code: 'FAILED_PRECONDITION',
    says: ['does not match the required base version', '1000000001', there],
  },
  {
    what: 'the delete of another version',
    ...committed({ delete: there, currentDocument: { updateTime } }),
    code: 'FAILED_PRECONDITION',
    says: ['does not match the required base version', '1000000001', there],
  },
  { what: 'the read of a missing document', method: 'GetDocument', request: { name: missing }, code: 'NOT_FOUND', says: [missing] },
  {
    what: 'a commit of an unknown transaction',
    method: 'Commit',
    request: { database, transaction: Buffer.from('never') },
    says: ['transaction has expired'],
  },
  {
    what: 'a read of an unknown transaction',
    method: 'GetDocument',
    request: { name: there, transaction: Buffer.from('never') },
    says: ['transaction has expired'],
  },
  { what: 'a rollback of no transaction', method: 'Rollback', request: { database }, says: ['transaction'] },
  { what: 'a document of 1,048,577 bytes', ...sized(1_048_577), says: [`${root}/c/size`, '1048577 bytes', '1048576'] },
  {
    what: 'writes of 10,485,761 bytes',
    ...payload(10_485_761),
    says: ['10485761 bytes', '10485760'],
    withinMs: 1_000,
    google: smallMessages,
  },
  { what: 'a text of 1,048,488 bytes', ...stored('a', text(1_048_488)), says: ['1048488 bytes', '1048487'] },
  { what: 'maps 21 deep', ...stored('m', nested(21)), says: ['nested', '20'] },
  { what: 'maps and arrays 22 deep', ...stored('m', arrays(11)), says: ['nested', '20'] },
  { what: 'a field name of 1,501 bytes', ...stored(named(1_501), text(1)), says: ['field name', '1501 bytes', '1500'] },
  {
    what: 'a mask path of 1,501 bytes',
    ...committed(written(there, {}, { updateMask: { fieldPaths: ['a'.repeat(1_501)] } })),
    says: ['field name', '1501 bytes', '1500'],
  },
  { what: 'a field without a name', ...stored('', text(1)), says: ['field name ""'] },
  ...['.', '..', '__x__'].map((id) => ({
    what: `a document id that is "${id}"`,
    ...committed(written(`${root}/c/${id}`)),
    says: [`"${id}"`, `${root}/c/${id}`],
  })),
  { what: 'a document id of 1,501 bytes', ...committed(written(`${root}/c/${named(1_501)}`)), says: ['id', '1501 bytes', '1500'] },
  { what: 'a collection id of 1,501 bytes', ...committed(written(`${root}/${named(1_501)}/a`)), says: ['id', '1501 bytes', '1500'] },
  { what: 'the name of a collection', ...committed(written(`${root}/c`)), says: [`"${root}/c"`, 'document id'] },
  {
    what: 'a document of another database',
    ...committed(written(there.replace('(default)', 'other'))),
    says: ['databases/other', root],
    google: { differs: 'takes the write' },
  },
  {
    what: '501 transforms of a document',
    ...committed(written(`${root}/c/t`, {}, { updateTransforms: increments(501) })),
    says: [`${root}/c/t`, '501', '500'],
    google: anyTransforms,
  },
  {
    what: '501 transforms of a document in two writes',
    ...committed(
      written(`${root}/c/t`, {}, { updateTransforms: increments(500) }),
      written(`${root}/c/t`, {}, { updateTransforms: increments(1) }),
    ),
    says: [`${root}/c/t`, '501', '500'],
    google: anyTransforms,
  },
  {
    what: 'a document twice in a BatchWrite',
    method: 'BatchWrite',
    request: { database, writes: [written(there), written(there)] },
    says: ['once', there],
  },
  { what: 'a database that is none', method: 'BeginTransaction', request: { database: 'projects/p' }, says: ['"projects/p"', 'databases'] },
  {
    what: 'a negative page size',
    method: 'ListDocuments',
    request: { parent: root, collectionId: 'c', pageSize: -1 },
    says: ['page_size', '-1'],
  },
  {
    what: 'a negative limit',
    method: 'RunQuery',
    request: { parent: root, structuredQuery: { from: [{ collectionId: 'c' }], limit: { value: -1 } } },
    says: ['limit', '-1'],
  },
  {
    what: 'a negative offset',
    method: 'RunQuery',
    request: { parent: root, structuredQuery: { from: [{ collectionId: 'c' }], offset: -1 } },
    says: ['offset', '-1'],
  },
  {
    what: '31 values of one filter',
    method: 'RunQuery',
    request: {
      parent: root,
      structuredQuery: {
        from: [{ collectionId: 'c' }],
        where: { fieldFilter: { field: { fieldPath: 'a' }, op: 'IN', value: { arrayValue: { values: Array(31).fill(text(1)) } } } },
      },
    },
    says: ['IN', '31', '30'],
  },
];

const taken: Taken[] = [
  { what: 'a document of 1,048,576 bytes', ...sized(1_048_576) },
  { what: 'writes of 10,485,760 bytes', ...payload(10_485_760), google: smallMessages },
  { what: 'a text of 1,048,487 bytes', ...stored('a', text(1_048_487)) },
  { what: 'maps 20 deep', ...stored('m', nested(20)) },
  { what: 'maps and arrays 20 deep', ...stored('m', arrays(10)) },
  { what: 'a field name of 1,500 bytes', ...stored(named(1_500), text(1)) },
  { what: 'a document id of 1,500 bytes', ...committed(written(`${root}/c/${named(1_500)}`)) },
  { what: '500 transforms of a document', ...committed(written(`${root}/c/t`, {}, { updateTransforms: increments(500) })) },
  { what: 'the delete of a missing document', ...committed({ delete: missing }) },
  {
    what: 'a rollback of an unknown transaction',
    method: 'Rollback',
    request: { database, transaction: Buffer.from('never') },
    google: { differs: 'answers INVALID_ARGUMENT' },
  },
];

for (const target of firestoreTargets(embedded)) {
  describe(`Firestore bad input: ${target.name}`, () => {
    const client = wireClient(target.address);
    const ask = asking(client, methods);
    beforeAll(async () => {
      await prepare(ask, [committed(written(there))]);
    });
    afterAll(() => client.close());
    refuses(target, ask, refused);
    takes(target, ask, taken);
  });
}
