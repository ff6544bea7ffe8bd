import { createRequire } from 'node:module';
import type * as firestore from '@google-cloud/firestore';
import { afterAll } from 'vitest';
import type { Time } from '../../src/emulator/time.ts';
import type { Databases } from './databases.ts';
import { isOfficial, officialFirestore } from './official.ts';

const require = createRequire(import.meta.url);

export type SecondFirestore = { readonly copy: typeof firestore; readonly db: firestore.Firestore };

/**
 * A client of a second copy of the package, as `firebase-admin` brings one: its classes are others than those that our adapters
 * import.
 */
export function secondFirestore(databases: Databases<Time>, projectId: string): SecondFirestore {
  const copy = secondCopy();
  const before = process.env.FIRESTORE_EMULATOR_HOST;
  process.env.FIRESTORE_EMULATOR_HOST = isOfficial ? officialFirestore() : databases.emulator.firestore.address;
  const db = new copy.Firestore({ projectId });
  if (before === undefined) delete process.env.FIRESTORE_EMULATOR_HOST;
  else process.env.FIRESTORE_EMULATOR_HOST = before;
  afterAll(() => db.terminate());
  return { copy, db };
}

function secondCopy(): typeof firestore {
  const first = Object.entries(require.cache).filter(([path]) => path.includes('/@google-cloud/firestore/'));
  for (const [path] of first) delete require.cache[path];
  try {
    return require('@google-cloud/firestore');
  } finally {
    for (const [path, module] of first) require.cache[path] = module;
  }
}
