import type { Faults } from '../faults.ts';
import type { Journal } from '../journal.ts';
import type { Time } from '../time.ts';
import { createDatabase, type Database } from './database.ts';
import { databaseJournal, type KeptDatabase, keptDatabases } from './journaled.ts';
import { checkDatabase, checkParent, databaseOf } from './paths.ts';

/** Every database there is; one comes to be when it is first named. */
export type Databases = {
  named(name: string): Database;
  /** The database of a document or of the root that collections lie below. */
  above(parent: string): Database;
  known(): ReadonlyMap<string, Database>;
  close(): void;
  /** As on a fresh start, all of them or one. */
  reset(name?: string): void;
};

export type DatabasesParts = { readonly time: Time; readonly faults: Faults; readonly journal: Journal; readonly lockTimeoutMs: number };

export function createDatabases({ time, faults, journal, lockTimeoutMs }: DatabasesParts): Databases {
  const databases = new Map<string, Database>();
  const open = (name: string, kept?: KeptDatabase): Database => {
    const abortsNext = () => faults.roll('abort-transaction', { rpc: 'Firestore.Commit', resource: name }) !== undefined;
    const database = createDatabase({ name, time, journal: databaseJournal(journal, name), kept, lockTimeoutMs, abortsNext });
    databases.set(name, database);
    return database;
  };
  const named = (name: string) => databases.get(name) ?? open(checkDatabase(name));
  for (const kept of keptDatabases(journal)) open(kept.name, kept);
  return {
    named,
    above(parent) {
      const name = databaseOf(parent);
      checkParent(name, parent);
      return named(name);
    },
    known: () => databases,
    close() {
      for (const { close } of databases.values()) close();
    },
    reset(only) {
      for (const [name, { erase }] of [...databases]) {
        if (only !== undefined && name !== only) continue;
        erase();
        databases.delete(name);
      }
    },
  };
}
