import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { deserialize, serialize } from 'node:v8';

/**
 * What outlives the process. A service notes each change as it makes it, and reads everything back when it starts; a call is answered
 * once what it changed is on disk.
 */
export type Journal = {
  /** Everything of a kind, in the order of its keys. */
  load<Value>(kind: string): Iterable<readonly [key: string, value: Value]>;
  /** The value is read when it is written, at the latest before `saved()` resolves: an object that changes meanwhile is noted once. */
  put(kind: string, key: string, value: unknown): void;
  delete(kind: string, key: string): void;
  /** Resolves once every change noted so far is on disk; undefined where none waits. */
  saved(): Promise<void> | undefined;
  close(): void;
};

/** State that ends with the process. */
export const noJournal: Journal = { load: () => [], put: () => {}, delete: () => {}, saved: () => undefined, close: () => {} };

const formatVersion = 2;

/**
 * A folder with one SQLite file. Changes of one turn of the event loop are one transaction, so that concurrent calls share the cost.
 *
 * @throws Error where the folder cannot be written, is in use, or holds another format
 */
export function sqliteJournal(folder: string): Journal {
  const database = open(folder);
  const statements = {
    put: database.prepare('INSERT INTO records (kind, key, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value'),
    delete: database.prepare('DELETE FROM records WHERE kind = ? AND key = ?'),
  };
  /** By kind, then by key; undefined deletes. */
  let pending = new Map<string, Map<string, unknown>>();
  let saving: Promise<void> | undefined;

  const note = (kind: string, key: string, value: unknown) => {
    const changes = pending.get(kind) ?? new Map<string, unknown>();
    pending.set(kind, changes.set(key, value));
    // What no call waits for, as the end of a task, is written as well; a failure is told to whoever waits.
    save().catch(() => {});
  };
  const write = () => {
    if (pending.size === 0) return;
    database.exec('BEGIN');
    try {
      for (const [kind, changes] of pending) {
        for (const [key, value] of changes) {
          if (value === undefined) statements.delete.run(kind, key);
          else statements.put.run(kind, key, serialize(value));
        }
      }
      database.exec('COMMIT');
      pending = new Map();
    } catch (error) {
      // Kept for the next try: what is not on disk is not answered.
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
  };

  const save = () => {
    saving ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      saving = undefined;
      write();
    });
    return saving;
  };

  return {
    *load<Value>(kind: string) {
      // A statement of its own: one kind may be read within the reading of another.
      for (const { key, value } of database.prepare('SELECT key, value FROM records WHERE kind = ? ORDER BY key').iterate(kind))
        if (typeof key === 'string' && value instanceof Uint8Array) yield [key, deserialize(value) as Value] as const;
    },
    put: note,
    delete: (kind, key) => note(kind, key, undefined),
    saved: () => (pending.size === 0 ? undefined : save()),
    close() {
      try {
        write();
      } finally {
        database.close();
      }
    },
  };
}

function open(folder: string): DatabaseSync {
  const refused = (why: string) => new Error(`the data folder ${folder} ${why}`);
  let database: DatabaseSync | undefined;
  try {
    mkdirSync(folder, { recursive: true });
    database = new DatabaseSync(join(folder, 'emulator.sqlite'));
    // Of a killed process nothing is lost: what was committed is with the operating system by then.
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;');
    database.exec(
      'BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS records (kind TEXT, key TEXT, value BLOB, PRIMARY KEY (kind, key)) WITHOUT ROWID',
    );
    const version = Number(database.prepare('PRAGMA user_version').get()?.user_version);
    if (version !== 0 && version !== formatVersion) throw refused(`holds format ${version}; this version reads ${formatVersion}`);
    database.exec(`PRAGMA user_version = ${formatVersion}; COMMIT`);
    return database;
  } catch (error) {
    database?.close();
    const reason = error instanceof Error ? error.message : String(error);
    if (/locked|busy/.test(reason)) throw refused('is in use by another emulator');
    throw reason.includes(folder) && reason.includes('holds format') ? error : refused(`cannot be written: ${reason}`);
  }
}
