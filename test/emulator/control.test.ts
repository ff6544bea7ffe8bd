import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { IndexDefinitions } from '../../src/emulator/firestore/index-definitions.ts';
import { type Emulator, type EmulatorOptions, manualTime, startEmulator } from '../../src/emulator/server.ts';
import { firestoreClient, pubsubClient } from '../support/targets.ts';

let emulator: Emulator | undefined;
afterEach(async () => {
  await emulator?.close();
  emulator = undefined;
});

async function started(options: EmulatorOptions = {}) {
  emulator = await startEmulator(options);
  const { pubsub, firestore, tasks } = emulator;
  const ask = async (method: string, path: string, body?: string, address = tasks.address) => {
    const response = await fetch(`http://${address}${path}`, { method, ...(body !== undefined && { body }) });
    return { status: response.status, body: await response.text() };
  };
  return { ask, emulator, addresses: [pubsub.address, firestore.address, tasks.address] };
}

describe('the HTTP side of the emulator', () => {
  test('answers GET / on the port of each service, beside gRPC', async () => {
    const { ask, addresses } = await started();
    for (const address of addresses) expect(await ask('GET', '/', undefined, address)).toEqual({ status: 200, body: 'Ok\n' });
    const pubsub = pubsubClient({ name: 'embedded', address: addresses[0] ?? '' }, 'ptk-http');
    await pubsub.createTopic('beside');
    await pubsub.close();
  });

  test('takes a request that arrives byte by byte', async () => {
    const { addresses } = await started();
    const socket = net.connect(Number(addresses[0]?.split(':')[1]), '127.0.0.1');
    for (const byte of 'GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n') {
      await new Promise<void>((resolve) => socket.write(byte, () => setImmediate(resolve)));
    }
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toContain('200 OK');
  });

  test('shuts down on POST /shutdown, and the ports are free again', async () => {
    const { ask, emulator: running, addresses } = await started();
    expect((await ask('POST', '/shutdown')).status).toBe(200);
    await running.closed;
    const again = await startEmulator({ ports: { pubsub: Number(addresses[0]?.split(':')[1]) } });
    expect(again.pubsub.address).toBe(addresses[0]);
    await again.close();
  });

  test('sets faults and tells the seed and how often each fired', async () => {
    const { ask, addresses } = await started({ faults: { seed: 42, rules: [] } });
    const rules = JSON.stringify([{ kind: 'answer-lost', rpc: 'Publisher.CreateTopic', times: 1 }]);
    expect(await ask('PUT', '/faults', rules)).toEqual({ status: 200, body: '{"seed":42,"rules":1}' });
    const pubsub = pubsubClient({ name: 'embedded', address: addresses[0] ?? '' }, 'ptk-http');
    // Applied, its answer lost, and tried again by the client.
    await expect(pubsub.createTopic('lost')).rejects.toThrow('ALREADY_EXISTS');
    await pubsub.close();
    expect(JSON.parse((await ask('GET', '/faults')).body)).toMatchObject({ seed: 42, counts: { 'answer-lost': 1, duplicate: 0 } });
  });

  test.each([
    ['PUT', '/faults', '[{"kind":"droop"}]', 400, 'fault rule 1: unknown kind "droop"'],
    ['PUT', '/faults', '{}', 400, 'the fault rules are no array'],
    ['PUT', '/faults', '[', 400, 'the body is no JSON'],
    ['DELETE', '/faults', undefined, 404, 'there is no DELETE /faults; there are GET /'],
    ['POST', '/time', '{"advanceMs":1}', 400, 'the emulator keeps real time; start it with --time manual'],
  ])('%s %s with %s is refused', async (method, path, body, status, reason) => {
    const { ask } = await started();
    const answer = await ask(method, path, body);
    expect(answer.status).toBe(status);
    expect(answer.body).toContain(reason);
  });

  test('moves manual time', async () => {
    const { ask } = await started({ time: manualTime(Date.UTC(2026, 0, 1)) });
    expect(await ask('POST', '/time', '{"advanceMs":-1}')).toEqual({ status: 400, body: 'advanceMs is -1; it must be a number from 0' });
    expect((await ask('POST', '/time', '{"advanceMs":2592000000}')).body).toBe('{"now":"2026-01-31T00:00:00.000Z"}');
    expect((await ask('GET', '/time')).body).toBe('{"now":"2026-01-31T00:00:00.000Z"}');
  });

  test('resets everything', async () => {
    const { ask, emulator: running, addresses } = await started();
    const pubsub = pubsubClient({ name: 'embedded', address: addresses[0] ?? '' }, 'ptk-http');
    const [topic] = await pubsub.createTopic('gone');
    await topic.createSubscription('gone-too');
    await topic.publishMessage({ data: Buffer.from('x') });
    running.faults.add({ kind: 'duplicate' });
    expect((await ask('GET', '/backlog')).body).toBe('{"messages":1}');
    expect((await ask('POST', '/reset')).status).toBe(200);
    expect((await ask('GET', '/backlog')).body).toBe('{"messages":0}');
    expect(running.faults.roll('duplicate', { resource: 's' })).toBeUndefined();
    expect(await topic.exists()).toEqual([false]);
    await pubsub.close();
  });
});

test('one Firestore database is emptied as in Google’s emulator', async () => {
  const { ask, emulator: running, addresses } = await started();
  const [one, other] = ['ptk-one', 'ptk-other'].map((projectId) => firestoreClient(addresses[1] ?? '', projectId));
  await one?.doc('orders/1').set({ a: 1 });
  await other?.doc('orders/1').set({ a: 1 });
  const path = '/emulator/v1/projects/ptk-one/databases/(default)/documents';
  expect(await ask('DELETE', path, undefined, addresses[1])).toEqual({ status: 200, body: '{}' });
  expect(running.firestore.documentCount()).toBe(1);
  expect((await other?.doc('orders/1').get())?.exists).toBe(true);
  await Promise.all([one?.terminate(), other?.terminate()]);
});

describe('starting', () => {
  test('leaves a data folder free where another option is refused', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'ptk-refused-'));
    const indexes = { indexes: [{}] } as unknown as IndexDefinitions;
    await expect(startEmulator({ dataDir, firestore: { indexes } })).rejects.toThrow('indexes[0] needs collectionGroup');
    await started({ dataDir });
    await emulator?.close();
    rmSync(dataDir, { recursive: true });
  });

  test('names a port in use, and frees the others', async () => {
    const { emulator: running } = await started();
    const port = Number(running.tasks.address.split(':')[1]);
    await expect(startEmulator({ ports: { tasks: port } })).rejects.toThrow(`port ${port} is in use`);
  });
});
