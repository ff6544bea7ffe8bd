import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Timestamp } from '@google-cloud/firestore';
import { afterAll, describe, expect, test } from 'vitest';
import { sqliteJournal } from '../../src/emulator/journal.ts';
import { manualTime } from '../../src/emulator/time.ts';
import {
  codeOf,
  type EmbeddedFirestore,
  embeddedFirestore,
  type RawFirestore,
  withFirestore,
  withRawFirestore,
} from './firestore-targets.ts';

const root = mkdtempSync(join(tmpdir(), 'firestore-restart-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folders = 0;
const newFolder = () => join(root, String(folders++));

/** Runs with an emulator on a folder; time starts at the same instant for each, as a clock that was set back would. */
async function on(folder: string, run: (emulator: EmbeddedFirestore<ReturnType<typeof manualTime>>) => Promise<void>): Promise<void> {
  const journal = sqliteJournal(folder);
  const emulator = await embeddedFirestore(manualTime(), { journal });
  try {
    await run(emulator);
  } finally {
    await emulator.stop();
    journal.close();
  }
}

/** The folder as a process killed at this moment leaves it. */
function killed(folder: string): string {
  const copy = newFolder();
  cpSync(folder, copy, { recursive: true });
  return copy;
}

const incremented = (name: string) => ({ update: { name }, updateTransforms: [{ fieldPath: 'n', increment: { integerValue: 1 } }] });

async function beginCommit(raw: RawFirestore, database: string) {
  const [begun] = await raw('BeginTransaction', { database });
  return { database, transaction: begun?.transaction, writes: [incremented(`${database}/documents/c/a`)] };
}

describe('Firestore after kill -9', () => {
  test('every confirmed document is there with its values and times, and what was deleted is not', async () => {
    const folder = newFolder();
    const data = {
      text: 'ü\u{1f600}',
      whole: 7,
      double: 1.5,
      none: null,
      list: [1, { a: true }],
      bytes: Buffer.from([0, 255]),
      at: new Timestamp(5, 1_000),
    };
    await on(folder, async ({ target }) => {
      await withFirestore(target, async (db, projectId) => {
        const { writeTime } = await db.doc('c/a').create(data);
        const gone = db.batch().set(db.doc('c/gone'), {}).set(db.doc('c/kept/below/b'), { n: 1 });
        await gone.commit();
        await db.doc('c/gone').delete();
        await db.doc('c/kept/below/b').update({ n: 2 });
        await on(killed(folder), async (second) => {
          await withFirestore({ ...second.target, projectId }, async (again) => {
            const a = await again.doc('c/a').get();
            expect(a.data()).toEqual(data);
            expect(a.updateTime).toEqual(writeTime);
            expect(a.createTime).toEqual(writeTime);
            expect((await again.doc('c/gone').get()).exists).toBe(false);
            const below = (await again.collectionGroup('below').get()).docs;
            expect(below.map((doc) => [doc.ref.path, doc.data()])).toEqual([['c/kept/below/b', { n: 2 }]]);
          })();
        });
      })();
    });
  });

  test('commit times go on above those of before, the deleted document included', async () => {
    const folder = newFolder();
    const times: bigint[] = [];
    const database = 'projects/p/databases/(default)';
    const commit =
      (writes: object[]) =>
      async ({ target }: EmbeddedFirestore<ReturnType<typeof manualTime>>) => {
        await withRawFirestore(target, async (raw) => {
          const [answer] = await raw('Commit', { database, writes });
          const { seconds = '0', nanos = 0 } = answer?.commitTime ?? {};
          times.push(BigInt(seconds) * 1_000_000_000n + BigInt(nanos));
        })();
      };
    await on(folder, async (emulator) => {
      await commit([incremented(`${database}/documents/c/a`)])(emulator);
      await commit([{ delete: `${database}/documents/c/a` }])(emulator);
    });
    await on(folder, commit([incremented(`${database}/documents/c/a`)]));
    expect(times).toEqual([...times].sort((left, right) => Number(left - right)));
    expect(new Set(times).size).toBe(3);
  });

  test('a commit repeated with the id of its transaction answers the same and applies nothing twice', async () => {
    const folder = newFolder();
    await on(folder, async ({ target }) => {
      await withRawFirestore(target, async (raw, database) => {
        const commit = await beginCommit(raw, database);
        const answer = await raw('Commit', commit);
        await on(killed(folder), async (second) => {
          await withRawFirestore(second.target, async (again) => {
            expect(await again('Commit', commit)).toEqual(answer);
            const [document] = await again('GetDocument', { name: `${database}/documents/c/a` });
            expect(document?.fields?.n).toMatchObject({ integerValue: '1' });
          })();
        });
      })();
    });
  });

  test('the outcome of a transaction is forgotten ten minutes after it, also on disk', async () => {
    const folder = newFolder();
    await on(folder, async ({ target, time }) => {
      await withRawFirestore(target, async (raw, database) => {
        const first = await beginCommit(raw, database);
        await raw('Commit', first);
        await time.advance(600_000);
        await raw('Commit', await beginCommit(raw, database));
        await on(killed(folder), async (second) => {
          await withRawFirestore(second.target, async (again) => {
            expect(await codeOf(again('Commit', first))).toBe('INVALID_ARGUMENT');
          })();
        });
      })();
    });
  });

  test('a transaction that was live has expired', async () => {
    const folder = newFolder();
    await on(folder, async ({ target }) => {
      await withRawFirestore(target, async (raw, database) => {
        const commit = await beginCommit(raw, database);
        await on(killed(folder), async (second) => {
          await withRawFirestore(second.target, async (again) => {
            await expect(again('Commit', commit)).rejects.toThrow('transaction has expired');
          })();
        });
      })();
    });
  });

  test('a reset leaves nothing on disk', async () => {
    const folder = newFolder();
    await on(folder, async ({ target, reset, documentCount }) => {
      await withFirestore(target, async (db) => {
        await Promise.all([db.doc('c/a').set({ n: 1 }), db.doc('c/b').set({ n: 1 })]);
        reset();
        expect(documentCount()).toBe(0);
        await db.doc('c/c').set({ n: 1 });
      })();
    });
    await on(folder, async ({ documentCount }) => expect(documentCount()).toBe(1));
  });
});
