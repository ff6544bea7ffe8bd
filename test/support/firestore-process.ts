import { fileURLToPath } from 'node:url';
import { run } from '../../src/cli/demo/processes.ts';
import { isOfficial, officialFirestore } from './official.ts';

export type FirestoreProcess = { readonly address: string; kill(): Promise<void> };

/** The embedded emulator as a process of its own, so that a busy client leaves it its time; or Google's in that mode. */
export async function startFirestoreProcess(): Promise<FirestoreProcess> {
  if (isOfficial) return { address: officialFirestore(), kill: async () => {} };
  let address = '';
  const emulator = await run({
    name: 'the emulator',
    script: fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url)),
    args: ['emulator', '--pubsub-port', '0', '--firestore-port', '0', '--tasks-port', '0', '--json'],
    env: {},
    untilReady: async (firstLine) => {
      address = (JSON.parse(await firstLine) as { firestore: string }).firestore;
    },
  });
  return { address, kill: emulator.kill };
}
