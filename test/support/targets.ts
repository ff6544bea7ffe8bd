import { Firestore, type Settings } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { inject, test } from 'vitest';
import { isOfficial } from './official.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** What the test is put to. */
    target?: Target['name'];
    /** What Google's emulator does instead; such a test is expected to fail there. */
    differs?: string;
  }
}

/** What a section G statement is put to: the embedded emulator, and Google's own where it runs. */
export type Target = { readonly name: 'embedded' | 'google'; readonly address: string };

/** Where Google's emulator is not asked: it differs from production, or lacks what the test needs (time, faults). */
export type Exception = { readonly differs: string } | { readonly notApplicable: string };

/** Google's emulator when it runs on this machine; say so in one `describe` per file beside the embedded one. */
export function googleTarget(service: 'pubsub' | 'firestore'): Target | undefined {
  const address = inject(service === 'pubsub' ? 'googlePubsub' : 'googleFirestore');
  return address ? { name: 'google', address } : undefined;
}

/** A test of what Google's emulator does otherwise may hang there. */
const differsWithinMs = 8_000;

/**
 * One numbered statement of `docs/facts.md` section G as one test. An exception is not registered on Google's emulator, except that
 * `npm run conformance` looks whether it still differs.
 */
export function statement(target: Target, number: number, title: string, run: () => Promise<void>, google?: Exception): void {
  const name = `G${number}: ${title}`;
  const meta = { target: target.name };
  if (target.name === 'embedded' && isOfficial) test(name, { meta }, ({ skip }) => skip('runs on the embedded emulator alone'));
  else if (target.name === 'embedded' || !google) test(name, { meta }, run);
  else if ('differs' in google && process.env.CONFORMANCE) {
    test(name, { meta: { ...meta, ...google }, fails: true, timeout: differsWithinMs }, run);
  } else if (isOfficial) {
    const reason = 'differs' in google ? 'differs on Google’s emulator' : 'needs what Google’s emulator has not';
    test(name, { meta }, ({ skip }) => skip(reason));
  }
}

export function pubsubClient(target: Target, projectId: string): PubSub {
  return new PubSub({ projectId, apiEndpoint: target.address, emulatorMode: true });
}

/** Reads the address in the constructor, so the variable is set only around it. */
export function firestoreClient(address: string, projectId: string, settings: Settings = {}): Firestore {
  const before = process.env.FIRESTORE_EMULATOR_HOST;
  process.env.FIRESTORE_EMULATOR_HOST = address;
  try {
    return new Firestore({ projectId, ...settings });
  } finally {
    if (before === undefined) delete process.env.FIRESTORE_EMULATOR_HOST;
    else process.env.FIRESTORE_EMULATOR_HOST = before;
  }
}
