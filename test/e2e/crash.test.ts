import { createServer, type Server } from 'node:http';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { firestoreFifoStore } from '../../src/shared/adapters/firestore-fifo.ts';
import { firestoreStreamStore } from '../../src/shared/adapters/firestore-streams.ts';
import { pubsubPublisher } from '../../src/shared/adapters/pubsub.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { freshCursor } from '../../src/shared/fifo/cursor.ts';
import { cursorKeyOf } from '../../src/shared/fifo/store.ts';
import { createSequencer } from '../../src/shared/outbox/sequencer.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { type Deployed, startFunction } from '../support/deployables.ts';
import { gate } from '../support/manual-system.ts';
import { firestoreClient } from '../support/targets.ts';

const projectId = 'ptk-crash';
let emulator: Backend;
let pubsub: PubSub;
let db: ReturnType<typeof firestoreClient>;
let fifo: Deployed;
let sink: Server;
let seen: string[] = [];
let onSeen: (body: string) => Promise<void> = async () => {};

beforeAll(async () => {
  sink = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.from(JSON.parse(Buffer.concat(chunks).toString()).message.data, 'base64').toString();
    seen.push(body);
    await onSeen(body);
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve));
  const address = sink.address();
  emulator = await startBackend();
  fifo = await startFunction('fifo', {
    ...emulator.env,
    GOOGLE_CLOUD_PROJECT: projectId,
    CONSUMER: 'c',
    SINK: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`,
    FIFO_LEASE_MS: '1000',
    FIFO_SWEEP_AFTER_MS: '1000',
    DEDUP_LEASE_MS: '1000',
    OUTBOX_RELAY_LEASE_MS: '1000',
  });
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
  db = firestoreClient(emulator.firestore.address, projectId);
  await pubsub.createTopic('orders');
  const retryPolicy = { minimumBackoff: { nanos: 100_000_000 }, maximumBackoff: { nanos: 300_000_000 } };
  await pubsub.topic('orders').createSubscription('orders', { pushConfig: { pushEndpoint: fifo.url }, retryPolicy });
});

afterAll(async () => {
  await Promise.all([fifo.kill(), pubsub.close(), db.terminate()]);
  sink.closeAllConnections();
  sink.close();
  await emulator.close();
});

const sequencer = (publish = pubsubPublisher(pubsub).publish) =>
  createSequencer({
    streams: firestoreStreamStore(db, system.clock),
    publisher: { publish },
    system,
    log: silentLog,
    options: { handoffMs: 1_000 },
  });

async function publishAll(stream: string, names: readonly string[], by = sequencer()): Promise<void> {
  await Promise.all(names.map((name) => by.publish({ stream, topic: 'orders', key: `${stream}/${name}`, data: Buffer.from(name) })));
  await by.flush();
}

describe('functions/fifo and kill -9', () => {
  test('a process killed in its handler holds its stream for one lease; then the number runs again, and the others after it', async () => {
    seen = [];
    const [entered, done] = [gate(), gate()];
    onSeen = async (body) => {
      if (body === 'c') done.open();
      if (body !== 'a' || seen.length > 1) return;
      entered.open();
      await new Promise(() => {});
    };
    await publishAll('killed', ['a', 'b', 'c']);
    await entered.opened;
    await fifo.kill();
    const killedAtMs = performance.now();
    await fifo.restart();
    await done.opened;
    expect(seen).toEqual(['a', 'a', 'b', 'c']);
    expect(performance.now() - killedAtMs).toBeGreaterThan(500);
  });

  test('what a dead publisher numbered and never sent is sent by the relay, in order', async () => {
    seen = [];
    const done = gate();
    onSeen = async (body) => {
      if (body === 'z') done.open();
    };
    // A publisher that dies after the commit sends nothing more.
    const dying = sequencer(() => Promise.reject(new Error('killed')));
    await publishAll('left', ['x', 'y', 'z'], dying);
    const relay = async (): Promise<number> => {
      const response = await fetch(`${fifo.url}/relay`, { method: 'POST' });
      const { published } = (await response.json()) as { published: number };
      return published > 0 ? published : relay();
    };
    expect(await relay()).toBe(3);
    await done.opened;
    expect(seen).toEqual(['x', 'y', 'z']);
    const entries = await db.collection('ptk-outbox').where('stream', '==', 'left').get();
    expect(entries.docs.map((entry) => entry.get('state'))).toEqual(['published', 'published', 'published']);
  });

  test('what was parked, and forgotten by a process that died before it looked, is run by the sweep', async () => {
    seen = [];
    onSeen = async () => {};
    const numbered = { 'ptk-stream': 'forgotten', 'ptk-seq': '2', 'ptk-epoch': '5', 'ptk-key': 'forgotten/b' };
    await pubsub.topic('orders').publishMessage({ data: Buffer.from('b'), attributes: numbered });
    const parked = db.collection('ptk-parked').where('stream', '==', 'forgotten');
    await vi.waitFor(async () => expect((await parked.get()).size).toBe(1), 10_000);
    const cursor = { ...freshCursor(5, 1), rev: 2, last: 1, started: 1, leaseMs: 1_000 };
    await firestoreFifoStore(db, system.clock).put(cursorKeyOf('c', 'forgotten'), cursor, 'absent', 'forever');
    const sweep = async () => (await fetch(`${fifo.url}/sweep`, { method: 'POST' })).json();
    await vi.waitFor(async () => expect(await sweep()).toEqual({ run: 1, removed: 0, gaps: 0, blocked: 0 }), 5_000);
    expect([seen, (await parked.get()).size]).toEqual([['b'], 0]);
  });
});
