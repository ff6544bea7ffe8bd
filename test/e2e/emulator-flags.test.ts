import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { firestoreClient, pubsubClient } from '../support/targets.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const anyPorts = ['--pubsub-port=0', '--firestore-port=0', '--tasks-port=0'];
const children = new Set<ChildProcess>();
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ptk-flags-'));
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
  rmSync(folder, { recursive: true });
});

function emulatorCommand(...args: string[]) {
  const child = spawn(process.execPath, ['dist/src/cli/main.js', 'emulator', ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  const errors: Buffer[] = [];
  child.stderr.on('data', (chunk) => errors.push(chunk));
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, stdout: lines.join('\n'), stderr: Buffer.concat(errors).toString() })),
  );
  const firstLine = new Promise<string>((resolve) => reader.once('line', resolve));
  return { child, ended, firstLine };
}

async function running(...args: string[]) {
  const command = emulatorCommand('--json', ...anyPorts, ...args);
  const died = command.ended.then(({ stderr }) => Promise.reject(new Error(stderr)));
  const addresses: { pubsub: string; firestore: string; tasks: string } = JSON.parse(await Promise.race([command.firstLine, died]));
  died.catch(() => {});
  return { ...command, addresses };
}

const ask = async (address: string, path: string, method = 'GET', body?: string) =>
  (await fetch(`http://${address}${path}`, { method, ...(body !== undefined && { body }) })).text();

describe('pubsub-toolkit emulator: bad input ends with one sentence and exit code 1', () => {
  const refused = async (...args: string[]) => {
    const { code, stdout, stderr } = await emulatorCommand(...anyPorts, ...args).ended;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr.trim().split('\n')).toHaveLength(1);
    return stderr.trim();
  };

  test('a port in use', async () => {
    const { addresses } = await running();
    const port = addresses.tasks.split(':')[1];
    expect(await refused('--tasks-port', `${port}`)).toBe(`pubsub-toolkit emulator: port ${port} is in use`);
  });

  test('a data folder that cannot be written, and one in use', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    expect(await refused('--data-dir', file)).toContain(`the data folder ${file} cannot be written: `);
    const data = join(folder, 'data');
    await running('--data-dir', data);
    expect(await refused('--data-dir', data)).toBe(`pubsub-toolkit emulator: the data folder ${data} is in use by another emulator`);
  });

  test('an unknown fault, a file that is no JSON, and one that is not there', async () => {
    const file = join(folder, 'faults.json');
    writeFileSync(file, '[{"kind":"droop-ack"}]');
    expect(await refused('--faults', file)).toContain('fault rule 1: unknown kind "droop-ack"; known are duplicate, ');
    writeFileSync(file, '{');
    expect(await refused('--faults', file)).toContain(`--faults: ${file} cannot be read as JSON`);
    expect(await refused('--faults', join(folder, 'none.json'))).toContain('no such file');
  });

  test.each([
    [['--seed', 'x'], '--seed is "x"; it must be a whole number from 0 to 4294967295'],
    [['--pubsub-port', '65536'], '--pubsub-port is "65536"; it must be a whole number from 0 to 65535'],
    [['--ordering', 'loose'], '--ordering is "loose"; it must be batch or strict'],
    [['--time', 'slow'], '--time is "slow"; it must be real or manual'],
    [['--nonsense'], "Unknown option '--nonsense'"],
  ])('%j', async (args, reason) => {
    expect(await refused(...args)).toContain(reason);
  });
});

describe('pubsub-toolkit emulator', () => {
  test('prints the seed it drew, or the one it was given', async () => {
    const drawn = await running();
    await ask(drawn.addresses.tasks, '/shutdown', 'POST');
    expect((await drawn.ended).stderr).toMatch(/^faults: seed \d+\n$/);
    const given = await running('--seed', '7');
    expect(JSON.parse(await ask(given.addresses.pubsub, '/faults'))).toMatchObject({ seed: 7 });
  });

  test('ends with exit code 0 on POST /shutdown and on SIGTERM', async () => {
    const first = await running();
    await ask(first.addresses.firestore, '/shutdown', 'POST');
    expect((await first.ended).code).toBe(0);
    const second = await running();
    second.child.kill('SIGTERM');
    expect((await second.ended).code).toBe(0);
  });

  test('takes faults from a file', async () => {
    const file = join(folder, 'faults.json');
    writeFileSync(file, JSON.stringify([{ kind: 'answer-lost', rpc: 'Publisher.CreateTopic', times: 1 }]));
    const { addresses } = await running('--faults', file);
    const pubsub = pubsubClient({ name: 'embedded', address: addresses.pubsub }, 'ptk-flags');
    await expect(pubsub.createTopic('orders')).rejects.toThrow('ALREADY_EXISTS');
    await pubsub.close();
  });

  test('keeps time still until it is told to go on', async () => {
    const { addresses } = await running('--time', 'manual');
    const before = JSON.parse(await ask(addresses.tasks, '/time')).now;
    const after = JSON.parse(await ask(addresses.tasks, '/time', 'POST', '{"advanceMs":86400000}')).now;
    expect(Date.parse(after) - Date.parse(before)).toBe(86_400_000);
  });

  test('keeps what was confirmed in its data folder over kill -9', async () => {
    const data = join(folder, 'data');
    const first = await running('--data-dir', data);
    const pubsub = pubsubClient({ name: 'embedded', address: first.addresses.pubsub }, 'ptk-flags');
    const [topic] = await pubsub.createTopic('orders');
    await topic.createSubscription('orders');
    await topic.publishMessage({ data: Buffer.from('x') });
    const db = firestoreClient(first.addresses.firestore, 'ptk-flags');
    await db.doc('orders/17').create({ state: 'paid' });
    first.child.kill('SIGKILL');
    await Promise.all([first.ended, pubsub.close(), db.terminate()]);
    const second = await running('--data-dir', data);
    expect(await ask(second.addresses.pubsub, '/backlog')).toBe('{"messages":1}');
    const again = firestoreClient(second.addresses.firestore, 'ptk-flags');
    expect((await again.doc('orders/17').get()).data()).toEqual({ state: 'paid' });
    await again.terminate();
  });
});

describe('pubsub-toolkit emulator env', () => {
  test('prints the variables of the default ports, of those given, and of the emulator that uses a folder', async () => {
    const printed = async (...args: string[]) => (await emulatorCommand('env', ...args).ended).stdout.split('\n');
    expect(await printed()).toEqual([
      'export PUBSUB_EMULATOR_HOST=127.0.0.1:8085',
      'export FIRESTORE_EMULATOR_HOST=127.0.0.1:8080',
      'export CLOUD_TASKS_EMULATOR_HOST=127.0.0.1:8123',
      'export METADATA_SERVER_DETECTION=none',
    ]);
    expect(await printed('--pubsub-port', '9000')).toContain('export PUBSUB_EMULATOR_HOST=127.0.0.1:9000');
    const data = join(folder, 'data');
    const { addresses } = await running('--data-dir', data);
    expect(await printed('--data-dir', data)).toContain(`export CLOUD_TASKS_EMULATOR_HOST=${addresses.tasks}`);
  });

  test('says so where no emulator has used the folder', async () => {
    const { code, stderr } = await emulatorCommand('env', '--data-dir', folder).ended;
    expect(code).toBe(1);
    expect(stderr).toBe(`pubsub-toolkit emulator: no emulator has used the data folder ${folder}\n`);
  });
});
