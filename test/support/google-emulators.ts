import type { TestProject } from 'vitest/node';
import { findGoogleEmulators, type RunningGoogleEmulator, startGoogleEmulator } from '../../src/cli/google-emulators.ts';

declare module 'vitest' {
  interface ProvidedContext {
    googlePubsub: string;
    googleFirestore: string;
  }
}

/** Starts Google's emulators as referee where the machine has them, and says so where it has not. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const installed = findGoogleEmulators();
  const running: RunningGoogleEmulator[] = [];
  const start = async (service: keyof typeof installed, name: 'googlePubsub' | 'googleFirestore') => {
    project.provide(name, '');
    const found = installed[service];
    if ('missing' in found) return console.log(`Google's ${service} emulator as referee: not run, ${found.missing}.`);
    const emulator = await startGoogleEmulator(service, found);
    running.push(emulator);
    project.provide(name, emulator.address);
  };
  await Promise.all([start('pubsub', 'googlePubsub'), start('firestore', 'googleFirestore')]);
  return async () => {
    await Promise.all(running.map((emulator) => emulator.kill()));
  };
}
