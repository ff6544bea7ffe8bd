import { afterAll, describe, expect, test } from 'vitest';
import { type Exception, statement } from '../support/targets.ts';
import { type RawReceived, worker } from './pubsub-raw.ts';
import { embeddedPubsub, pubsubTargets, withRawPubsub } from './pubsub-targets.ts';
import { askRest, json, publishPath, refusal } from './rest-publish.ts';

const embedded = await embeddedPubsub();
afterAll(embedded.stop);

const contentOf = ({ message: { data, attributes, orderingKey } }: RawReceived) => ({ data: [...data], attributes, orderingKey });
const base64 = (bytes: readonly number[]) => Buffer.from(bytes).toString('base64');
const bytes = [0, 250, 255, 62];

const numbers: Exception = { differs: 'takes a number for a text' };

const taken = [
  { what: 'base64 without padding', message: { data: 'APr_Pg' }, data: bytes },
  { what: 'base64 of the alphabet of URLs', message: { data: 'APr_Pg==' }, data: bytes },
  { what: 'a key as the proto spells it', message: { data: 'YQ==', ordering_key: 'k' }, data: [97], orderingKey: 'k' },
  { what: 'null for what is not set', message: { data: 'YQ==', attributes: null, orderingKey: null }, data: [97] },
  { what: 'attributes without data', message: { attributes: { kind: 'é', empty: '' } }, attributes: { kind: 'é', empty: '' } },
  {
    what: 'an id and a time of the client’s, and gives its own',
    message: { data: 'YQ==', messageId: 'mine', publishTime: '2020-01-01T00:00:00Z' },
    data: [97],
  },
];

const refused: readonly { what: string; body: unknown; says: string; google?: Exception }[] = [
  { what: 'no body', body: '', says: 'the body is no JSON' },
  { what: 'half a body', body: '{"messages":[', says: 'the body is no JSON' },
  { what: 'a body that is no object', body: [], says: 'the body is no JSON object' },
  { what: 'a body of null', body: 'null', says: 'the body is no JSON object' },
  { what: 'no messages', body: {}, says: 'the request holds no messages' },
  { what: 'messages that are null', body: { messages: null }, says: 'the request holds no messages' },
  { what: 'messages that are no array', body: { messages: {} }, says: 'messages is no array' },
  { what: 'a message of null', body: { messages: [{ data: 'YQ==' }, null] }, says: 'messages[1] is no JSON object' },
  { what: 'a message of nothing', body: { messages: [{}] }, says: 'a message needs data or at least one attribute' },
  { what: '1,001 messages', body: { messages: Array(1_001).fill({ data: 'YQ==' }) }, says: '1001 messages; at most 1000' },
  {
    what: 'an unknown field of a message',
    body: { messages: [{ text: 'a' }] },
    says: 'messages[0] has the unknown field "text"; known are data',
  },
  {
    what: 'a topic in the body',
    body: { topic: 'projects/p/topics/other', messages: [{ data: 'YQ==' }] },
    says: 'the body has the unknown field "topic"; known are messages',
    google: { differs: 'never answers' },
  },
  { what: 'data that is no base64', body: { messages: [{ data: 'a$==' }] }, says: 'messages[0].data is no base64' },
  { what: 'data of one digit too many', body: { messages: [{ data: 'YWFhY' }] }, says: 'messages[0].data is no base64' },
  {
    what: 'data that is a number',
    body: { messages: [{ data: 5 }] },
    says: 'messages[0].data holds a number; it must be a text',
  },
  {
    what: 'an attribute that is a number',
    body: { messages: [{ attributes: { a: 1 } }] },
    says: 'messages[0].attributes holds a number; it must be a text',
    google: numbers,
  },
  {
    what: 'an attribute that is null',
    body: { messages: [{ attributes: { a: null } }] },
    says: 'messages[0].attributes holds null; it must be a text',
  },
  { what: 'attributes that are an array', body: { messages: [{ attributes: [] }] }, says: 'messages[0].attributes is no JSON object' },
  {
    what: 'half a character',
    body: '{"messages":[{"attributes":{"a":"\\ud83d"}}]}',
    says: 'messages[0].attributes holds a text that is no Unicode',
    google: { differs: 'makes a question mark of it' },
  },
  {
    what: 'a key that is a number',
    body: { messages: [{ data: 'YQ==', orderingKey: 7 }] },
    says: 'messages[0].orderingKey holds a number; it must be a text',
    google: numbers,
  },
];

for (const target of pubsubTargets(embedded)) {
  const meta = { target: target.name };
  const here = <Row extends { readonly google?: Exception }>(rows: readonly Row[]) =>
    rows.filter(({ google }) => target.name === 'embedded' || !google);

  describe(`Pub/Sub over REST: ${target.name}`, () => {
    statement(
      target,
      13,
      'a publish over REST gives ids in the order of its messages, and puts on a subscription what one over gRPC does',
      withRawPubsub(target, async (raw) => {
        const { topic, subscription } = await worker(raw, { enableMessageOrdering: true });
        const messages = [
          { data: bytes, attributes: { kind: 'é', empty: '' }, orderingKey: 'k' },
          { data: [], attributes: { only: 'this' }, orderingKey: 'k' },
          { data: [97], attributes: {}, orderingKey: 'k' },
        ];
        const overGrpc = messages.map(({ data, ...more }) => ({ data: Buffer.from(data), ...more }));
        const overRest = messages.map(({ data, ...more }) => ({ data: base64(data), ...more }));
        const { messageIds } = await raw.call('Publish', { topic, messages: overGrpc });
        const answer = await askRest(target, publishPath(topic), { messages: overRest });
        const received = await raw.pull(subscription);
        expect(received.map(contentOf)).toEqual([...messages, ...messages]);
        const ids = received.map(({ message }) => message.messageId);
        expect(ids.slice(0, 3)).toEqual(messageIds);
        expect(answer).toEqual({ status: 200, body: { messageIds: ids.slice(3) } });
      }),
    );

    test.each(taken)('takes $what', { meta }, async ({ message, data = [], attributes = {}, orderingKey = '' }) => {
      await withRawPubsub(target, async (raw) => {
        const { topic, subscription } = await worker(raw);
        expect(await askRest(target, publishPath(topic), { messages: [message] })).toMatchObject({ status: 200 });
        const [received] = await raw.pull(subscription);
        expect(received && contentOf(received)).toEqual({ data, attributes, orderingKey });
        expect(received?.message.messageId).not.toBe('mine');
        expect(Number(received?.message.publishTime.seconds)).toBeGreaterThan(Date.now() / 1_000 - 60);
      })();
    });

    test.each(here(refused))('refuses $what, and stores nothing', { meta }, async ({ body, says }) => {
      await withRawPubsub(target, async (raw) => {
        const { topic, subscription } = await worker(raw);
        const message = target.name === 'google' ? expect.any(String) : expect.stringContaining(says);
        expect(await askRest(target, publishPath(topic), body)).toEqual(refusal(400, 'INVALID_ARGUMENT', message));
        expect(await raw.pull(subscription)).toEqual([]);
      })();
    });

    statement(
      target,
      16,
      'a publish over REST to a topic that is missing is NOT_FOUND',
      withRawPubsub(target, async (raw) => {
        const topic = `${raw.project}/topics/missing`;
        const answer = await askRest(target, publishPath(topic), { messages: [{ data: 'YQ==' }] });
        expect(answer).toEqual(refusal(404, 'NOT_FOUND', target.name === 'google' ? 'Topic not found' : `topic ${topic} does not exist`));
      }),
    );

    test('takes 10,000,000 bytes, and a name with a % that stands for a character', { meta }, async () => {
      await withRawPubsub(target, async (raw) => {
        const topic = await raw.createTopic('orders');
        const data = Buffer.alloc(9_999_999).toString('base64');
        const path = publishPath(topic).replace('/orders', '/or%64ers');
        const answer = await askRest(target, path, { messages: [{ data }, { data: 'YQ==' }] });
        expect(answer).toEqual({ status: 200, body: { messageIds: [expect.any(String), expect.any(String)] } });
      })();
    });
  });
}

describe('Pub/Sub over REST, where Google’s emulator does otherwise or says less', () => {
  const { target } = embedded;
  const body = { messages: [{ data: 'YQ==' }] };
  const path = publishPath('projects/p/topics/orders');

  test('10,000,001 bytes are refused, as over gRPC', async () => {
    const messages = [{ data: Buffer.alloc(10_000_000).toString('base64') }, { data: 'YQ==' }];
    await withRawPubsub(target, async (raw) => {
      const { topic } = await worker(raw);
      const message = 'the messages take 10000001 bytes; at most 10000000 are allowed';
      expect(await askRest(target, publishPath(topic), { messages })).toEqual(refusal(400, 'INVALID_ARGUMENT', message));
    })();
  });

  test.each([
    ['GET', path],
    ['PUT', path],
    ['POST', '/v1/projects/p/topics/orders:pull'],
    ['POST', '/v1/projects/p/topics/orders'],
    ['POST', '/v1/projects/p/subscriptions/worker:publish'],
    ['POST', '/v1'],
  ])('%s %s is not there, and the answer names what is', async (method, asked) => {
    const message = `there is no ${method} ${asked}; there is POST /v1/projects/PROJECT/topics/TOPIC:publish`;
    expect(await askRest(target, `${asked}?alt=json`, body, { method })).toEqual(refusal(404, 'NOT_FOUND', message));
  });

  test.each([
    ['x', 400, '"projects/p/topics/x" is no name of the form'],
    ['a%zz', 400, 'holds a % that stands for nothing'],
    ['a%2Fb', 400, '"projects/p/topics/a/b" is no name of the form'],
  ])('the topic %s is answered %i', async (topic, status, says) => {
    const answer = await askRest(target, publishPath(`projects/p/topics/${topic}`), body);
    expect(answer).toEqual(refusal(status, 'INVALID_ARGUMENT', expect.stringContaining(says)));
  });

  test.each([
    { type: 'application/json; charset=utf-8', status: 404 },
    { type: 'Application/JSON', status: 404 },
    { type: undefined, status: 404 },
    { type: 'application/octet-stream', status: 400 },
    { type: 'application/jsonp', status: 400 },
  ])('a body of the type $type is answered $status by a topic that is missing', async ({ type, status }) => {
    const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type };
    expect(await askRest(target, path, '{"messages":[{"data":"YQ=="}]}', { headers })).toMatchObject({ status });
  });

  test('parameters of the address are passed over', async () => {
    await withRawPubsub(target, async (raw) => {
      const { topic } = await worker(raw);
      expect(await askRest(target, `${publishPath(topic)}?alt=json&prettyPrint=false`, body, { headers: json })).toMatchObject({
        status: 200,
      });
    })();
  });
});
