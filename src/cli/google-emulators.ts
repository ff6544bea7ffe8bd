import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort, type Running, runProgram, untilAnswers } from './demo/processes.ts';

export type GoogleService = 'pubsub' | 'firestore';

/** How one of Google's emulators is started with Java, or the sentence that says what is missing. */
export type Installed = { readonly folder: string; readonly args: readonly string[] } | { readonly missing: string };

export type RunningGoogleEmulator = Running & { readonly address: string };

const emulators = {
  pubsub: { folder: 'pubsub-emulator/lib', argsFor: (jar: string) => ['-jar', jar] },
  firestore: {
    folder: 'cloud-firestore-emulator',
    argsFor: (jar: string) => ['-cp', jar, 'com.google.cloud.datastore.emulator.firestore.CloudFirestore'],
  },
} as const;

/** Looks where the Google Cloud CLI keeps them; `gcloud beta emulators` would start the same jars through Python. */
export function findGoogleEmulators(): Readonly<Record<GoogleService, Installed>> {
  const platform = findPlatform();
  const find = (service: GoogleService): Installed => {
    if ('missing' in platform) return platform;
    const folder = join(platform.folder, emulators[service].folder);
    const jar = existsSync(folder) && readdirSync(folder).find((file) => /^cloud-.*emulator.*\.jar$/.test(file));
    if (!jar) return { missing: `Google's ${service} emulator is not installed` };
    return { folder, args: emulators[service].argsFor(join(folder, jar)) };
  };
  return { pubsub: find('pubsub'), firestore: find('firestore') };
}

/**
 * Starts one of Google's emulators on a free port of loopback; it ends with this process.
 *
 * @throws if it is not installed, or ends before it takes requests
 */
export async function startGoogleEmulator(
  service: GoogleService,
  installed = findGoogleEmulators()[service],
): Promise<RunningGoogleEmulator> {
  if ('missing' in installed) throw new Error(installed.missing);
  const address = `127.0.0.1:${await freePort()}`;
  const running = await runProgram({
    name: `Google's ${service} emulator`,
    command: 'java',
    args: [...installed.args, '--host=127.0.0.1', `--port=${address.slice(address.indexOf(':') + 1)}`],
    cwd: installed.folder,
    env: {},
    untilReady: () => untilAnswers(`http://${address}/`),
  });
  return { ...running, address };
}

function findPlatform(): { folder: string } | { missing: string } {
  try {
    execFileSync('java', ['-version'], { stdio: 'ignore' });
  } catch {
    return { missing: 'Java is not installed' };
  }
  const gcloud = (process.env.PATH ?? '')
    .split(':')
    .map((folder) => join(folder, 'gcloud'))
    .find(existsSync);
  if (!gcloud) return { missing: 'the Google Cloud CLI is not installed' };
  return { folder: join(dirname(dirname(realpathSync(gcloud))), 'platform') };
}
