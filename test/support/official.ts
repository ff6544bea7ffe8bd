import { inject, TestRunner } from 'vitest';

/** `EMULATORS=official`: what needs neither faults nor manual time nor inspection is put to Google's emulators. */
export const isOfficial = process.env.EMULATORS === 'official';

/** What the embedded emulator has and Google's have not. */
export type Lacking = 'faults' | 'manual time' | 'inspection';

/** The address of Google's Firestore emulator in this mode, which cannot do without it. */
export function officialFirestore(): string {
  const address = inject('googleFirestore');
  if (!address) throw new Error('EMULATORS is official, and Google’s Firestore emulator is not installed');
  return address;
}

/** Ends the test that asks for it: counted as not run. */
export function notRun(lacking: Lacking): never {
  const test = TestRunner.getCurrentTest();
  if (!test) throw new Error(`Google’s emulators have no ${lacking}`);
  return test.context.skip(`needs ${lacking}`);
}
