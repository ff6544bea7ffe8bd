import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import type { OutgoingMessage } from '../../src/shared/message.ts';
import { createSink, sinkReconcile } from '../../src/shell/sink.ts';
import { testMessage } from '../../src/testing/doubles.ts';

const context = { signal: new AbortController().signal };
const noPublisher = { publish: () => Promise.reject(new Error('not asked')) };
const invalid = (reason: RegExp) => ({ code: 'INVALID_SETTINGS', message: expect.stringMatching(reason) });

describe('createSink refuses', () => {
  test.each([
    ['ftp://x', /^SINK is "ftp:\/\/x"; it must be topic:NAME, https/],
    ['orders', /^SINK is "orders"; it must be/],
    ['topic:', /^SINK is "topic:"; it must be/],
    ['topic:my orders', /^SINK is "topic:my orders"; it must be/],
    ['', /^SINK is ""; it must be/],
    ['ftp://user:secret@h', /^SINK is "…@h"; it must be/],
    ['https://', /^SINK is "https:\/\/", which is no URL/],
    ['https://user:secret@h/x', /^SINK is "…@h\/x", which is no URL without user name and password$/],
    ['https://user@h', /^SINK is "…@h", which is no URL without/],
    ['http://example.com/', /^SINK is "http:\/\/example.com\/"; http:\/\/ is allowed for loopback only$/],
    ['http://localhost.example.com/', /loopback only/],
    ['http://10.0.0.1/', /loopback only/],
  ])('%s', async (sink, reason) => {
    await expect(createSink(sink, noPublisher, '.')).rejects.toMatchObject(invalid(reason));
  });
});

test.each(['https://example.com/x', 'http://localhost:1/x', 'http://127.0.0.1:1/x', 'http://[::1]:1/x'])('%s is taken', async (sink) => {
  await expect(createSink(sink, noPublisher, '.')).resolves.toBeTypeOf('function');
});

describe('a topic', () => {
  test('gets the message under its dedup key', async () => {
    const published: [string, readonly OutgoingMessage[]][] = [];
    const publisher = {
      publish: async (topic: string, messages: readonly OutgoingMessage[]) => {
        published.push([topic, messages]);
        return ['1'];
      },
    };
    const sink = await createSink('topic:projects/p/topics/out', publisher, '.');
    await sink(testMessage({ messageId: '5', data: 'x' }), { ...context, idempotencyKey: 'k' });
    await sink(testMessage({ messageId: '5', data: 'x' }), context);
    expect(published).toMatchObject([
      ['projects/p/topics/out', [{ data: Buffer.from('x'), attributes: { 'ptk-key': 'k', 'ptk-origin-id': '5' } }]],
      ['projects/p/topics/out', [{ attributes: { 'ptk-key': 'projects/test/subscriptions/test/5' } }]],
    ]);
  });

  test('that fails fails the handler', async () => {
    const sink = await createSink('topic:out', noPublisher, '.');
    await expect(sink(testMessage(), context)).rejects.toThrow('not asked');
  });
});

describe('a module', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sink-'));
    await writeFile(join(folder, 'good.mjs'), 'export default async (message) => message.messageId;');
    await writeFile(join(folder, 'named.mjs'), 'export const handle = async () => {};');
    await writeFile(join(folder, 'reconciling.mjs'), "export default () => {}; export const reconcile = async () => 'done';");
    await writeFile(join(folder, 'odd.mjs'), "export default () => {}; export const reconcile = 'done';");
    await writeFile(join(folder, 'object.mjs'), 'export default { handle: async () => {} };');
  });
  afterAll(() => rm(folder, { recursive: true }));

  test('is found in the folder of the deployable, and its default export handles', async () => {
    const sink = await createSink('module:./good.mjs', noPublisher, folder);
    expect(await sink(testMessage({ messageId: '5' }), context)).toBe('5');
  });

  test.each([
    ['module:./none.mjs', /names the module .\/none.mjs, which is not in the deployable's folder/],
    ['module:./named.mjs', /names the module .\/named.mjs, whose default export is no handler function/],
    ['module:./object.mjs', /whose default export is no handler function/],
  ])('%s is refused', async (sink, reason) => {
    await expect(createSink(sink, noPublisher, folder)).rejects.toMatchObject(invalid(reason));
  });

  test('may export what reconciles a run that died', async () => {
    const record = {} as DedupRecord;
    expect(await (await sinkReconcile('module:./reconciling.mjs', folder))?.(record)).toBe('done');
    expect([await sinkReconcile('module:./good.mjs', folder), await sinkReconcile('topic:out', folder)]).toEqual([undefined, undefined]);
    await expect(sinkReconcile('module:./odd.mjs', folder)).rejects.toMatchObject(invalid(/whose export reconcile is no function/));
  });
});
