import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { Message } from '../../src/shared/message.ts';
import type { DeadLetters, Handler, VerdictHandler } from '../../src/shared/ports.ts';
import { createPush } from '../../src/shared/transports/push.ts';
import { ack, deadLetter, nack, type Verdict } from '../../src/shared/verdict.ts';
import { keptDeadLetters, memoryRecordStore, silentLog } from '../../src/testing/doubles.ts';
import { gate, manualSystem } from '../support/manual-system.ts';

const request = { headers: {}, body: { message: { messageId: '5', data: 'eA==' }, subscription: 'projects/p/subscriptions/s' } };

function setUp(handle: VerdictHandler, deadLetters: DeadLetters = keptDeadLetters()) {
  const logged: string[] = [];
  const log = { ...silentLog, error: (fields: object, text: string) => void logged.push(`${text}: ${JSON.stringify(fields)}`) };
  return { logged, push: createPush({ handle, deadLetters, log }) };
}

describe('push', () => {
  test.each<[number, Verdict]>([
    [204, ack('processed')],
    [204, ack('duplicate')],
    [204, ack('old')],
    [204, ack('tombstone')],
    [204, ack('scheduled')],
    [204, ack('skipped')],
    [429, nack('inProgress', 500)],
    [429, nack('early')],
    [429, nack('blocked')],
    [429, nack('leaseLost')],
    [500, nack('failed')],
    [503, nack('storeUnavailable')],
    [204, deadLetter('malformed', 'why')],
    [204, deadLetter('conflict', 'why')],
  ])('answers %d for %o', async (status, verdict) => {
    const { push } = setUp(async () => verdict);
    expect(await push(request)).toEqual({ status });
  });

  test('hands the message to its handler once', async () => {
    const handled: Message[] = [];
    const { push } = setUp(async (message) => {
      handled.push(message);
      return ack('processed');
    });
    await push(request);
    expect(handled).toMatchObject([{ messageId: '5', data: Buffer.from('x'), subscription: 'projects/p/subscriptions/s' }]);
  });

  test.each([undefined, '', 'text', [], {}, { message: {} }, { message: { messageId: '5', data: '%' } }])(
    'answers 400 for the body %o, says why, and handles nothing',
    async (body) => {
      let runs = 0;
      const { push, logged } = setUp(async () => {
        runs += 1;
        return ack('processed');
      });
      const { status, text } = await push({ headers: {}, body });
      expect([status, runs]).toEqual([400, 0]);
      expect(text).toMatch(/is missing|is not base64/);
      expect(logged).toEqual([expect.stringContaining('push request rejected')]);
    },
  );

  test('answers a dead letter only once it is stored', async () => {
    const stored = gate();
    const order: string[] = [];
    const deadLetters = {
      publish: async () => {
        await stored.opened;
        order.push('stored');
      },
    };
    const { push } = setUp(async () => deadLetter('malformed', 'why'), deadLetters);
    const answered = push(request).then(({ status }) => order.push(`answered ${status}`));
    stored.open();
    await answered;
    expect(order).toEqual(['stored', 'answered 204']);
  });

  test('keeps message and reason of a dead letter', async () => {
    const deadLetters = keptDeadLetters();
    await setUp(async () => deadLetter('conflict', 'two bodies'), deadLetters).push(request);
    expect(deadLetters.kept).toMatchObject([{ message: { messageId: '5' }, reason: 'conflict', detail: 'two bodies' }]);
  });

  test('tells of a dead letter as a warning, with its detail and without its payload', async () => {
    const warned: object[] = [];
    const log = { ...silentLog, warn: (fields: object, text: string) => void warned.push([text, fields]) };
    await createPush({ handle: async () => deadLetter('conflict', 'two bodies'), deadLetters: keptDeadLetters(), log })(request);
    expect(warned).toEqual([['dead letter', { messageId: '5', traceId: undefined, reason: 'conflict', detail: 'two bodies' }]]);
  });

  test('does not ack a dead letter that could not be stored', async () => {
    const deadLetters = { publish: () => Promise.reject(new ToolkitError('SERVICE_UNAVAILABLE', 'no topic')) };
    const { push, logged } = setUp(async () => deadLetter('malformed', 'why'), deadLetters);
    expect(await push(request)).toEqual({ status: 500 });
    expect(logged).toEqual([expect.stringContaining('no topic')]);
  });

  test('answers 500 where a handler throws that should not, and shows the sender nothing of it', async () => {
    const { push, logged } = setUp(() => Promise.reject(new Error('boom')));
    expect(await push(request)).toEqual({ status: 500 });
    expect(logged).toEqual([expect.stringContaining('boom')]);
  });
});

test('log lines say of which trace the message is', async () => {
  const lines: object[] = [];
  const write = (fields: object) => void lines.push(fields);
  const log = { ...silentLog, debug: write, error: write };
  const traced = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' };
  const body = { ...request.body, message: { ...request.body.message, attributes: traced } };
  const push = (handle: VerdictHandler) => createPush({ handle, deadLetters: keptDeadLetters(), log })({ headers: {}, body });
  await push(async () => ack('processed'));
  await push(() => Promise.reject(new Error('boom')));
  expect(lines).toEqual([
    { messageId: '5', traceId: '4bf92f3577b34da6a3ce929d0e0e4736', reason: 'processed' },
    { messageId: '5', traceId: '4bf92f3577b34da6a3ce929d0e0e4736', reason: 'boom', code: undefined },
  ]);
});

describe('a handler that takes longer than the push deadline', () => {
  const deduped = (handler: Handler) => {
    const system = manualSystem();
    const dedup = createDedup({ consumer: 'c', store: memoryRecordStore<DedupRecord>(system.clock), system, log: silentLog });
    return setUp(dedup(handler)).push;
  };

  test('is not run again by the second request, which is answered as the first', async () => {
    const hold = gate();
    let runs = 0;
    const push = deduped(async () => {
      runs += 1;
      await hold.opened;
    });
    const answers = [push(request), push(request)];
    hold.open();
    expect(await Promise.all(answers)).toEqual([{ status: 204 }, { status: 204 }]);
    expect(await push(request)).toEqual({ status: 204 });
    expect(runs).toBe(1);
  });

  test('and fails, fails both requests, and runs for the third', async () => {
    const hold = gate();
    let runs = 0;
    const push = deduped(async () => {
      if (++runs > 1) return;
      await hold.opened;
      throw new Error('boom');
    });
    const answers = [push(request), push(request)];
    hold.open();
    expect(await Promise.all(answers)).toEqual([{ status: 500 }, { status: 500 }]);
    expect(await push(request)).toEqual({ status: 204 });
    expect(runs).toBe(2);
  });

  test('goes on when the platform gives the request up, and is not told to stop', async () => {
    const started = gate();
    const hold = gate();
    const signals: AbortSignal[] = [];
    const push = deduped(async (_, { signal }) => {
      signals.push(signal);
      started.open();
      await hold.opened;
    });
    const givenUp = gate();
    const server = createServer(async (_, response) => {
      response.once('close', givenUp.open);
      const { status } = await push(request);
      response.writeHead(status).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const first = send({ port, host: '127.0.0.1', method: 'POST' }).on('error', () => {});
    first.end();
    await started.opened;
    first.destroy();
    await givenUp.opened;
    const second = send({ port, host: '127.0.0.1', method: 'POST' }).end();
    hold.open();
    const [answer] = await once(second, 'response');
    expect(answer.statusCode).toBe(204);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    server.closeAllConnections();
    server.close();
  });
});
