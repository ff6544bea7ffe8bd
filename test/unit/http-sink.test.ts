import { createServer, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freePort } from '../../src/cli/demo/processes.ts';
import { createSink } from '../../src/shell/sink.ts';
import { testMessage } from '../../src/testing/doubles.ts';

type Seen = { readonly method: string | undefined; readonly headers: IncomingMessage['headers']; readonly body: string };

const context = { signal: new AbortController().signal };
const seen: Seen[] = [];
let answer = { status: 200, headers: {} };
let url = '';

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  seen.push({ method: request.method, headers: request.headers, body: Buffer.concat(chunks).toString() });
  response.writeHead(answer.status, answer.headers).end('said the sink');
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/hook?token=secret`;
});
beforeEach(() => {
  seen.length = 0;
});
afterAll(async () => {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
});

const post = async (status: number, headers = {}, idempotencyKey = 'k') => {
  answer = { status, headers };
  const sink = await createSink(url, { publish: async () => [] }, '.');
  return sink(testMessage({ messageId: '5', data: 'x', attributes: { a: '1' } }), { ...context, idempotencyKey });
};

describe('an HTTP sink', () => {
  test('is posted the push envelope as it came, with the dedup key as its idempotency key', async () => {
    await post(200);
    expect(seen).toMatchObject([{ method: 'POST', headers: { 'content-type': 'application/json', 'idempotency-key': 'k' } }]);
    expect(JSON.parse(seen[0]?.body ?? '')).toMatchObject({
      message: { messageId: '5', data: 'eA==', attributes: { a: '1' } },
      subscription: 'projects/test/subscriptions/test',
    });
  });

  test('gets a key that no header could hold in percent-encoding', async () => {
    await post(200, {}, 'ö\n😀');
    expect(seen[0]?.headers['idempotency-key']).toBe('%C3%B6%0A%F0%9F%98%80');
  });

  test.each([200, 201, 202, 204])('that answers %d has handled the message', async (status) => {
    await expect(post(status)).resolves.toBeUndefined();
  });

  test.each([400, 405, 409, 410, 413, 422])('that answers %d refuses it for good', async (status) => {
    await expect(post(status)).rejects.toMatchObject({ code: 'REFUSED' });
  });

  test.each([401, 403, 404, 408, 425, 429, 500, 502, 503, 504])('that answers %d may take it later', async (status) => {
    await expect(post(status)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  });

  test('that sends elsewhere is not followed, and has not handled it', async () => {
    await expect(post(307, { location: '/other' })).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    expect(seen).toHaveLength(1);
  });

  test('is named by its origin in an error, without the rest of its URL', async () => {
    const error = await post(500).catch((reason: Error) => reason);
    expect(error).toMatchObject({ message: expect.stringMatching(/^the sink http:\/\/127\.0\.0\.1:\d+ answered 500$/) });
  });

  test('that does not answer may take it later', async () => {
    const sink = await createSink(`http://127.0.0.1:${await freePort()}/`, { publish: async () => [] }, '.');
    await expect(sink(testMessage(), context)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE', cause: expect.anything() });
  });

  test('is left alone once the run must stop', async () => {
    const sink = await createSink(url, { publish: async () => [] }, '.');
    await expect(sink(testMessage(), { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    expect(seen).toEqual([]);
  });
});
