import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe, expect, test } from 'vitest';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import { documentId, hash } from '../../src/shared/names.ts';
import type { Context, RecordStore } from '../../src/shared/ports.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { type GuardOptions, guardedApp, type Served, serve } from '../support/express-app.ts';
import { gate } from '../support/manual-system.ts';

const records = () => memoryRecordStore<DedupRecord>(system.clock);
const withStore = (store: RecordStore<DedupRecord>, options = {}): GuardOptions => ({ over: { store, options } });
const down = () => Promise.reject(new ToolkitError('STORE_UNAVAILABLE', 'Redis: connect ECONNREFUSED 10.0.0.3:6379'));

/** A route that begins, tells, and waits until it may answer. */
async function waiting(options?: GuardOptions) {
  const app = guardedApp(options);
  const begun = gate();
  const hold = gate();
  let runs = 0;
  let context: Context | undefined;
  app.post('/', async (_request, response) => {
    context = response.locals.idempotency as Context;
    const run = ++runs;
    begun.open();
    await hold.opened;
    response.status(201).json({ run });
  });
  return { ...(await serve(app)), begun, hold, runs: () => runs, context: () => context };
}

/** Sends a request whose connection ends before the answer comes, once `until` is over. */
async function hangUp({ url }: Served, until: Promise<void>): Promise<void> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const lines = ['POST / HTTP/1.1', 'Host: a', 'Idempotency-Key: "k"', 'Content-Type: application/json', 'Content-Length: 2', '', '{}'];
  socket.write(lines.join('\r\n'));
  await until;
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.destroy();
  await closed;
}

/** Asks until the key is not in progress. */
async function settled({ post }: Served) {
  for (;;) {
    const answer = await post('/');
    if (answer.status !== 409) return answer;
  }
}

describe('requests of one key at once', () => {
  test('run once: the others are told that it is in progress, and then what it answered', async () => {
    const { post, hold, begun, runs } = await waiting();
    const all = Array.from({ length: 20 }, () => post('/'));
    await begun.opened;
    const early = await post('/');
    expect(early.status).toBe(409);
    expect(early.headers.get('content-type')).toBe('application/problem+json');
    expect(early.headers.get('retry-after')).toBe('60');
    hold.open();
    const answers = await Promise.all(all);
    expect(answers.filter(({ status, isReplay }) => status === 201 && !isReplay)).toHaveLength(1);
    expect(answers.filter(({ status, isReplay }) => status !== 409 && !isReplay)).toHaveLength(1);
    expect(await post('/')).toMatchObject({ status: 201, text: '{"run":1}', isReplay: true });
    expect(runs()).toBe(1);
  });

  test('say when to come again in whole seconds, rounded up', async () => {
    const { post, hold, begun } = await waiting(withStore(records(), { leaseMs: 1_500 }));
    const first = post('/');
    await begun.opened;
    expect((await post('/')).headers.get('retry-after')).toBe('2');
    hold.open();
    await first;
  });

  test('of other content are refused once the first is done', async () => {
    const { post, hold, begun } = await waiting();
    const first = post('/', '"k"', { a: 1 });
    await begun.opened;
    expect((await post('/', '"k"', { a: 2 })).status).toBe(409);
    hold.open();
    await first;
    expect((await post('/', '"k"', { a: 2 })).status).toBe(422);
  });
});

describe('a client that hangs up', () => {
  test('finds its result when it asks again', async () => {
    const served = await waiting();
    await hangUp(served, served.begun.opened);
    served.hold.open();
    expect(await settled(served)).toMatchObject({ status: 201, text: '{"run":1}', isReplay: true });
    expect(served.runs()).toBe(1);
  });

  test.each(['a pipe', 'a pipeline'])('in the middle of %s finds the whole of it', async (way) => {
    const app = guardedApp();
    const begun = gate();
    const hold = gate();
    let runs = 0;
    app.post('/', async (request, response) => {
      runs += 1;
      const parts = async function* () {
        yield 'first ';
        begun.open();
        await hold.opened;
        yield 'second';
      };
      request.socket.once('close', () => hold.open());
      if (way === 'a pipe') Readable.from(parts()).pipe(response);
      else await pipeline(Readable.from(parts()), response).catch(() => {});
    });
    const served = await serve(app);
    await hangUp(served, begun.opened);
    expect(await settled(served)).toMatchObject({ status: 200, text: 'first second', isReplay: true });
    expect(runs).toBe(1);
  });
});

describe('a handler that destroys its response', () => {
  test('frees the key', async () => {
    const app = guardedApp();
    let runs = 0;
    app.post('/', (_request, response) => void (++runs === 1 ? response.destroy() : response.send('ok')));
    const served = await serve(app);
    await expect(served.post('/')).rejects.toThrow();
    expect(await settled(served)).toMatchObject({ status: 200, text: 'ok', isReplay: false });
  });
});

describe('a store that is down', () => {
  test('is told as 503 without its address, and nothing runs', async () => {
    const { post, runs } = await waiting(withStore({ get: down, put: down }, { storeTimeoutMs: 100 }));
    const answer = await post('/');
    expect(answer.status).toBe(503);
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    expect(answer.text).not.toContain('10.0.0.3');
    expect(runs()).toBe(0);
  });

  test('at the end keeps the response back, since nothing vouches for it', async () => {
    const store = records();
    const ends: RecordStore<DedupRecord> = {
      get: store.get,
      put: (key, record, expected, keepMs) => (record.state === 'done' ? down() : store.put(key, record, expected, keepMs)),
    };
    const logged: object[] = [];
    const log = { ...silentLog, error: (fields: object) => void logged.push(fields) };
    const { post, hold } = await waiting({ ...withStore(ends, { storeTimeoutMs: 100 }), log });
    hold.open();
    const answer = await post('/');
    expect([answer.status, answer.text.includes('run')]).toEqual([503, false]);
    expect(answer.headers.get('etag')).toBeNull();
    expect(logged).toEqual([expect.objectContaining({ wasRun: true })]);
  });

  test('for the end of a failed run answers the failure all the same', async () => {
    const store = records();
    const frees: RecordStore<DedupRecord> = {
      get: store.get,
      put: (key, record, expected, keepMs) => (record.state === 'failed' ? down() : store.put(key, record, expected, keepMs)),
    };
    const app = guardedApp(withStore(frees, { storeTimeoutMs: 100 }));
    app.post('/', (_request, response) => void response.status(500).send('mine'));
    expect(await (await serve(app)).post('/')).toMatchObject({ status: 500, text: 'mine' });
  });
});

test('a run that another one outlived is told by its signal, and answers 409', async () => {
  const store = records();
  const { post, hold, begun, context } = await waiting(withStore(store, { leaseMs: 300, ttlSeconds: 60 }));
  const answer = post('/');
  await begun.opened;
  const aborted = new Promise((resolve) => context()?.signal.addEventListener('abort', resolve));
  const key = context()?.idempotencyKey ?? '';
  expect(JSON.parse(key)).toEqual(['POST', '/', null, 'k']);
  // Another worker takes the key, whatever the lease says.
  const id = documentId('orders', hash(key));
  const current = await store.get(id);
  if (!current) throw new Error('nothing is claimed');
  await store.put(id, { ...current.record, rev: current.record.rev + 1, runId: 'other' }, current.version, 'forever');
  await aborted;
  hold.open();
  expect((await answer).status).toBe(409);
});
