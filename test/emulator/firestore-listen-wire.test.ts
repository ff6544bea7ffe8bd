import grpc from '@grpc/grpc-js';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { embeddedFirestore, firestoreDefinition } from './firestore-targets.ts';

const emulator = await embeddedFirestore();
const client = new (grpc.makeGenericClientConstructor(firestoreDefinition, 'Firestore'))(
  emulator.target.address,
  grpc.credentials.createInsecure(),
);
afterEach(() => emulator.reset());
afterAll(async () => {
  client.close();
  await emulator.stop();
});

const database = 'projects/p/databases/(default)';
const parent = `${database}/documents`;
const name = (path: string) => `${parent}/${path}`;
const inC = { parent, structuredQuery: { from: [{ collectionId: 'c' }] } };

function openListen() {
  const method = firestoreDefinition.Listen;
  if (!method) throw new Error('the protos hold no Listen');
  const stream = client.makeBidiStreamRequest(method.path, method.requestSerialize, method.responseDeserialize);
  const answers = stream[Symbol.asyncIterator]();
  return {
    send: (request: object) => stream.write({ database, ...request }),
    add: (addTarget: object) => stream.write({ database, addTarget: { targetId: 2, ...addTarget } }),
    end: () => stream.end(),
    cancel: () => stream.cancel(),
    /** The next answers as short texts, each kind with the targets and the document it is about. */
    async next(count: number): Promise<string[]> {
      const texts: string[] = [];
      while (texts.length < count) texts.push(shortened((await answers.next()).value));
      return texts;
    },
    isOver: async () => (await answers.next()).done === true,
  };
}

type Answer = {
  readonly targetChange?: { targetChangeType: string; targetIds: number[]; cause: { code: number; message: string } | null } | null;
  readonly documentChange?: { document: { name: string }; targetIds: number[] } | null;
  readonly documentDelete?: { document: string; removedTargetIds: number[] } | null;
  readonly documentRemove?: { document: string; removedTargetIds: number[] } | null;
};

function shortened({ targetChange, documentChange, documentDelete, documentRemove }: Answer): string {
  if (targetChange) {
    const { targetChangeType, targetIds, cause } = targetChange;
    return `${targetChangeType} ${targetIds}${cause ? ` ${grpc.status[cause.code]}: ${cause.message}` : ''}`.trim();
  }
  const short = (document = '') => document.replace(`${parent}/`, '');
  if (documentChange) return `changed ${short(documentChange.document.name)} for ${documentChange.targetIds}`;
  if (documentDelete) return `deleted ${short(documentDelete.document)} for ${documentDelete.removedTargetIds}`;
  return `removed ${short(documentRemove?.document)} for ${documentRemove?.removedTargetIds}`;
}

function commit(...writes: object[]): Promise<unknown> {
  const method = firestoreDefinition.Commit;
  if (!method) throw new Error('the protos hold no Commit');
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(method.path, method.requestSerialize, method.responseDeserialize, { database, writes }, (error, answer) =>
      error ? reject(error) : resolve(answer),
    );
  });
}
const set = (path: string, n: number) => ({ update: { name: name(path), fields: { n: { integerValue: n } } } });

describe('Firestore.Listen on the wire: embedded', () => {
  test('a target is added, shown, current, and then everything is as of one instant', async () => {
    await commit(set('c/a', 1));
    const listen = openListen();
    listen.add({ query: inC });
    expect(await listen.next(4)).toEqual(['ADD 2', 'changed c/a for 2', 'CURRENT 2', 'NO_CHANGE']);
    listen.end();
    expect(await listen.isOver()).toBe(true);
  });

  test('a commit is one snapshot for all targets, and what concerns none of them is not told', async () => {
    const listen = openListen();
    listen.add({ query: inC });
    listen.add({ targetId: 4, documents: { documents: [name('c/a'), name('d/none')] } });
    expect(await listen.next(7)).toEqual([
      'ADD 2',
      'CURRENT 2',
      'NO_CHANGE',
      'ADD 4',
      'deleted c/a for 4',
      'deleted d/none for 4',
      'CURRENT 4',
    ]);
    expect(await listen.next(1)).toEqual(['NO_CHANGE']);
    await commit(set('c/a', 1), set('c/b', 1), set('elsewhere/a', 1));
    expect(await listen.next(4)).toEqual(['changed c/a for 2', 'changed c/b for 2', 'changed c/a for 4', 'NO_CHANGE']);
    await commit(set('elsewhere/a', 2));
    await commit(set('c/b', 1));
    await commit({ delete: name('c/a') });
    expect(await listen.next(3)).toEqual(['deleted c/a for 2', 'deleted c/a for 4', 'NO_CHANGE']);
    listen.end();
  });

  test('a document that still exists is removed from a view, one that does not is deleted', async () => {
    await commit(set('c/a', 1), set('c/b', 2));
    const listen = openListen();
    const structuredQuery = { ...inC.structuredQuery, orderBy: [{ field: { fieldPath: 'n' } }], limit: { value: 1 } };
    listen.add({ query: { parent, structuredQuery } });
    await listen.next(4);
    await commit(set('c/a', 3));
    expect(await listen.next(3)).toEqual(['changed c/b for 2', 'removed c/a for 2', 'NO_CHANGE']);
    await commit({ delete: name('c/b') });
    expect(await listen.next(3)).toEqual(['changed c/a for 2', 'deleted c/b for 2', 'NO_CHANGE']);
    listen.end();
  });

  test('with an offset the window moves on when a document before it goes', async () => {
    await commit(set('c/a', 1), set('c/b', 2), set('c/c', 3));
    const listen = openListen();
    listen.add({ query: { parent, structuredQuery: { ...inC.structuredQuery, offset: 1, limit: { value: 1 } } } });
    expect(await listen.next(4)).toEqual(['ADD 2', 'changed c/b for 2', 'CURRENT 2', 'NO_CHANGE']);
    await commit({ delete: name('c/a') });
    expect(await listen.next(3)).toEqual(['changed c/c for 2', 'removed c/b for 2', 'NO_CHANGE']);
    listen.end();
  });

  test('a client that comes back with a token or a read time is told to reset and gets everything again', async () => {
    await commit(set('c/a', 1));
    for (const resume of [{ resumeToken: Buffer.from('any') }, { readTime: { seconds: '1' } }]) {
      const listen = openListen();
      listen.add({ query: inC, ...resume });
      expect(await listen.next(5)).toEqual(['ADD 2', 'RESET 2', 'changed c/a for 2', 'CURRENT 2', 'NO_CHANGE']);
      listen.end();
    }
  });

  test('a target that is to be shown once goes after its first snapshot, one that is removed at once', async () => {
    const listen = openListen();
    listen.add({ query: inC, once: true });
    expect(await listen.next(4)).toEqual(['ADD 2', 'CURRENT 2', 'NO_CHANGE', 'REMOVE 2']);
    listen.add({ query: inC });
    await listen.next(3);
    listen.send({ removeTarget: 2 });
    expect(await listen.next(1)).toEqual(['REMOVE 2']);
    await commit(set('c/a', 1));
    listen.add({ targetId: 0, documents: { documents: [name('c/a')] } });
    expect(await listen.next(4)).toEqual(['ADD 1', 'changed c/a for 1', 'CURRENT 1', 'NO_CHANGE']);
    expect(emulator.openListens()).toEqual([name('c/a')]);
    listen.end();
  });

  test.for([
    { target: { targetId: -2, query: inC }, says: 'target_id is -2; it must not be negative' },
    { target: {}, says: 'a target needs documents or a structured query' },
    { target: { query: { parent } }, says: 'a target needs documents or a structured query' },
    { target: { query: { ...inC, parent: 'projects/other/databases/d/documents' } }, says: 'is not below' },
    { target: { documents: { documents: ['c/a'] } }, says: 'document name "c/a" is not below' },
    {
      target: { query: { parent, structuredQuery: { ...inC.structuredQuery, limit: { value: -1 } } } },
      says: 'limit -1; neither may be negative',
    },
  ])('a target that is wrong is removed with the reason and the stream goes on: $says', async ({ target, says }) => {
    const listen = openListen();
    listen.add(target);
    const [refused] = await listen.next(1);
    expect(refused).toMatch(/^REMOVE -?2 INVALID_ARGUMENT: /);
    expect(refused).toContain(says);
    listen.add({ query: inC });
    expect(await listen.next(1)).toEqual(['ADD 2']);
    listen.end();
  });

  test('a target id that is taken or unknown is refused, and stands for no target then', async () => {
    const listen = openListen();
    listen.add({ query: inC });
    await listen.next(3);
    listen.add({ query: inC });
    listen.send({ removeTarget: 7 });
    expect(await listen.next(2)).toEqual([
      'REMOVE 2 INVALID_ARGUMENT: target_id 2 is in use on this stream',
      'REMOVE 7 INVALID_ARGUMENT: remove_target is 7; this stream has no such target',
    ]);
    expect(emulator.openListens()).toEqual([]);
    listen.end();
  });

  test.for([
    { title: 'no target', requests: [{}], says: 'needs add_target or remove_target' },
    { title: 'no database', requests: [{ database: '', removeTarget: 1 }], says: '"" is not a database' },
    {
      title: 'two databases',
      requests: [{ addTarget: { query: inC } }, { database: 'projects/p/databases/other', removeTarget: 1 }],
      says: 'database is "projects/p/databases/other"; this stream listens to',
    },
  ])('a request that concerns no target ends the stream: $title', async ({ requests, says }) => {
    const listen = openListen();
    for (const request of requests) listen.send(request);
    await expect(listen.next(4)).rejects.toMatchObject({ code: grpc.status.INVALID_ARGUMENT, details: expect.stringContaining(says) });
    expect(emulator.openListens()).toEqual([]);
  });

  test('every open stream is ended at will', async () => {
    const listen = openListen();
    listen.add({ query: inC });
    await listen.next(3);
    emulator.endStreams();
    await expect(listen.next(1)).rejects.toMatchObject({ code: grpc.status.UNAVAILABLE });
  });

  test('a client that breaks off leaves nothing behind', async () => {
    const listen = openListen();
    listen.add({ query: inC });
    await listen.next(3);
    listen.cancel();
    await expect(listen.next(1)).rejects.toMatchObject({ code: grpc.status.CANCELLED });
    await expect.poll(() => emulator.openListens()).toEqual([]);
  });
});
