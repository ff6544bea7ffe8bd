import { inject } from 'vitest';
import { endNotRun } from './not-run.ts';

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

/** Ends the test that asks for it. */
export const notRun = (lacking: Lacking): never => endNotRun(`needs ${lacking}`);
