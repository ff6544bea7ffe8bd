import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Journal, sqliteJournal } from '../../src/emulator/journal.ts';

let folder = '';
const open = new Set<Journal>();
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ptk-journal-'));
});
afterEach(() => {
  for (const journal of open) journal.close();
  open.clear();
  rmSync(folder, { recursive: true });
});

const journalIn = (where = folder): Journal => {
  const journal = sqliteJournal(where);
  open.add(journal);
  return journal;
};
const close = (journal: Journal) => {
  open.delete(journal);
  journal.close();
};

describe('the journal of a data folder', () => {
  test('gives back what was put, by kind and in the order of the keys', async () => {
    const journal = journalIn();
    journal.put('topic', 'b', { name: 'b', data: Buffer.from([0, 255]), at: 1.5, none: undefined });
    journal.put('topic', 'a', 'first');
    journal.put('queue', 'a', 17n);
    await journal.saved();
    close(journal);
    const again = journalIn();
    expect([...again.load('topic')]).toEqual([
      ['a', 'first'],
      ['b', { name: 'b', data: Buffer.from([0, 255]), at: 1.5, none: undefined }],
    ]);
    expect([...again.load('queue')]).toEqual([['a', 17n]]);
    expect([...again.load('snapshot')]).toEqual([]);
  });

  test('a change is on disk once saved() resolves: a copy of the folder taken then holds it, as after kill -9', async () => {
    const journal = journalIn();
    const copy = join(folder, 'copy');
    for (let round = 0; round < 5; round++) {
      journal.put('topic', `t${round}`, round);
      journal.delete('topic', `t${round - 1}`);
      await journal.saved();
      rmSync(copy, { recursive: true, force: true });
      for (const file of ['emulator.sqlite', 'emulator.sqlite-wal']) cpSync(join(folder, file), join(copy, file));
      const killed = journalIn(copy);
      expect([...killed.load('topic')]).toEqual([[`t${round}`, round]]);
      close(killed);
    }
  });

  test('changes of one turn are one transaction, the last of a key wins, and there is nothing to wait for afterwards', async () => {
    const journal = journalIn();
    const task = { dispatches: 0 };
    journal.put('task', 'x', task);
    const first = journal.saved();
    task.dispatches = 2;
    journal.put('task', 'y', 1);
    journal.delete('task', 'y');
    expect(journal.saved()).toBe(first);
    await first;
    expect(journal.saved()).toBeUndefined();
    expect([...journal.load('task')]).toEqual([['x', { dispatches: 2 }]]);
  });

  test('what no call waits for is written within two turns', async () => {
    const journal = journalIn();
    journal.put('task', 'x', 1);
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect([...journal.load('task')]).toEqual([['x', 1]]);
    expect(journal.saved()).toBeUndefined();
  });

  test('what cannot be written is refused to whoever waits, and kept for the next try', async () => {
    const journal = journalIn();
    journal.put('topic', 'a', { broken: () => {} });
    await expect(journal.saved()).rejects.toThrow('could not be cloned');
    journal.put('topic', 'b', 2);
    await expect(journal.saved()).rejects.toThrow('could not be cloned');
    journal.put('topic', 'a', 1);
    await journal.saved();
    expect([...journal.load('topic')]).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
  });

  test('a folder in use, one that cannot be written and one of another format are refused in a sentence', () => {
    const journal = journalIn();
    expect(() => sqliteJournal(folder)).toThrow(`the data folder ${folder} is in use by another emulator`);
    close(journal);
    const file = join(folder, 'file');
    writeFileSync(file, '');
    expect(() => sqliteJournal(file)).toThrow(`the data folder ${file} cannot be written: `);
    const database = new DatabaseSync(join(folder, 'emulator.sqlite'));
    database.exec('PRAGMA user_version = 7');
    database.close();
    expect(() => sqliteJournal(folder)).toThrow(`the data folder ${folder} holds format 7; this version reads 2`);
  });
});
