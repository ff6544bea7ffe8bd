import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { freePort } from '../../src/cli/demo/processes.ts';

declare module 'vitest' {
  interface ProvidedContext {
    googlePubsub: string;
    googleFirestore: string;
  }
}

/** Starts Google's emulators as referee where the machine has them, and says so where it has not. */
export default async function setup(project: TestProject): Promise<() => void> {
  const found = findSdk();
  project.provide('googlePubsub', '');
  project.provide('googleFirestore', '');
  if ('reason' in found) {
    console.log(`Google's emulators as referee: not run, ${found.reason}.`);
    return () => {};
  }
  const running: ChildProcess[] = [];
  const start = async (name: 'googlePubsub' | 'googleFirestore', jar: string | undefined, main: string[], ready: RegExp) => {
    if (!jar) return console.log(`Google's emulators as referee: ${name} not run, its jar is not installed.`);
    const port = await freePort();
    const child = spawn('java', [...main, '--host=127.0.0.1', `--port=${port}`], { cwd: dirname(jar), stdio: ['ignore', 'pipe', 'pipe'] });
    running.push(child);
    await untilPrinted(child, ready);
    project.provide(name, `127.0.0.1:${port}`);
  };
  const pubsub = jarIn(join(found.platform, 'pubsub-emulator', 'lib'));
  const firestore = jarIn(join(found.platform, 'cloud-firestore-emulator'));
  await Promise.all([
    start('googlePubsub', pubsub, ['-jar', pubsub ?? ''], /listening|started/i),
    start(
      'googleFirestore',
      firestore,
      ['-cp', firestore ?? '', 'com.google.cloud.datastore.emulator.firestore.CloudFirestore'],
      /running|listening/i,
    ),
  ]);
  return () => {
    for (const child of running) child.kill('SIGKILL');
  };
}

function findSdk(): { platform: string } | { reason: string } {
  try {
    execFileSync('java', ['-version'], { stdio: 'ignore' });
  } catch {
    return { reason: 'Java is not installed' };
  }
  const gcloud = (process.env.PATH ?? '')
    .split(':')
    .map((folder) => join(folder, 'gcloud'))
    .find(existsSync);
  if (!gcloud) return { reason: 'the Google Cloud CLI is not installed' };
  return { platform: join(dirname(dirname(realpathSync(gcloud))), 'platform') };
}

function jarIn(folder: string): string | undefined {
  if (!existsSync(folder)) return undefined;
  const jar = readdirSync(folder).find((file) => /^cloud-.*emulator.*\.jar$/.test(file));
  return jar && join(folder, jar);
}

function untilPrinted(child: ChildProcess, ready: RegExp): Promise<void> {
  return new Promise((resolve, reject) => {
    let seen = '';
    const read = (chunk: Buffer) => {
      seen += chunk.toString();
      if (ready.test(seen)) resolve();
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('exit', (code) => reject(new Error(`Google's emulator ended with ${code}: ${seen.slice(-400)}`)));
  });
}
