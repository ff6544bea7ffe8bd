import { afterAll, beforeAll, describe } from 'vitest';
import { readProtos } from '../../src/emulator/grpc.ts';
import type { Exception } from '../support/targets.ts';
import { asking, prepare, type Refused, refuses, takes } from './bad-input.ts';
import { embeddedPubsub, pubsubTargets } from './pubsub-targets.ts';
import { methodsOf, wireClient } from './wire-client.ts';

const embedded = await embeddedPubsub();
afterAll(embedded.stop);

const protos = readProtos('@google-cloud/pubsub', 'protos.json');
const methods = ['Publisher', 'Subscriber'].flatMap((service) => methodsOf(protos, `google.pubsub.v1.${service}`));
const project = `projects/ptk-settings-${process.pid}`;
const [topic, dead, gone] = ['orders', 'dead', 'gone'].map((id) => `${project}/topics/${id}`);
const worker = `${project}/subscriptions/worker`;
const seconds = (count: number, nanos = 0) => ({ seconds: String(count), nanos });
const day = 86_400;

let serial = 0;
const made = (settings: object) => ({
  method: 'CreateSubscription',
  request: { name: `${project}/subscriptions/made-${serial++}`, topic, ...settings },
});
const deadLetters = (maxDeliveryAttempts: number) => ({ deadLetterPolicy: { deadLetterTopic: dead, maxDeliveryAttempts } });
const retention = (messageRetentionDuration: object) => ({ messageRetentionDuration });
const retries = (least: object, most: object) => ({ retryPolicy: { minimumBackoff: least, maximumBackoff: most } });
const push = (pushEndpoint: string) => ({ pushConfig: { pushEndpoint } });
/** Of 256 bytes with none, in characters of two bytes. */
const filter = (more = '') => `attributes:"${'é'.repeat(121)}a"${more}`;

const accepts9 = { differs: 'accepts 9 s' };
const anyFilter = { differs: 'takes a filter that is none' };
const outOfRange = { differs: 'answers OUT_OF_RANGE' };
const refused: (Pick<Refused, 'what' | 'code' | 'says' | 'google'> & { readonly settings: object })[] = [
  { what: 'a name that exists', settings: { name: worker }, code: 'ALREADY_EXISTS', says: [worker] },
  { what: 'an id of 2 characters', settings: { name: `${project}/subscriptions/ab` }, says: ['subscriptions/ab"', '3 to 255'] },
  { what: 'a missing topic', settings: { topic: gone }, code: 'NOT_FOUND', says: [`${gone}`] },
  {
    what: 'an ack deadline of 9 s',
    settings: { ackDeadlineSeconds: 9 },
    says: ['ack_deadline_seconds', '9', '10 to 600'],
    google: accepts9,
  },
  { what: 'an ack deadline of 601 s', settings: { ackDeadlineSeconds: 601 }, says: ['ack_deadline_seconds', '601', '10 to 600'] },
  { what: 'a negative ack deadline', settings: { ackDeadlineSeconds: -1 }, says: ['ack_deadline_seconds', '-1', '10 to 600'] },
  {
    what: 'a retention below 10 min',
    settings: retention(seconds(599, 999_999_999)),
    says: ['message_retention_duration', '599.999999999', '600 to 2678400'],
  },
  {
    what: 'a retention above 31 d',
    settings: retention(seconds(31 * day, 1)),
    says: ['message_retention_duration', '2678400.000000001', '600 to 2678400'],
  },
  {
    what: 'a ttl below a day',
    settings: { expirationPolicy: { ttl: seconds(day - 1) } },
    says: ['expiration_policy.ttl', '86399', '86400'],
    google: { differs: 'takes any ttl' },
  },
  { what: '4 delivery attempts', settings: deadLetters(4), says: ['max_delivery_attempts', '4', '5 to 100'], google: outOfRange },
  { what: '101 delivery attempts', settings: deadLetters(101), says: ['max_delivery_attempts', '101', '5 to 100'], google: outOfRange },
  { what: 'a missing dead-letter topic', settings: { deadLetterPolicy: { deadLetterTopic: gone } }, code: 'NOT_FOUND', says: [`${gone}`] },
  { what: 'a negative backoff', settings: retries(seconds(-1), seconds(1)), says: ['minimum_backoff', '-1000', '0 to 600000'] },
  {
    what: 'a backoff above 600 s',
    settings: retries(seconds(1), seconds(600, 1_000_000)),
    says: ['maximum_backoff', '600001', '0 to 600000'],
  },
  {
    what: 'a least backoff above the most',
    settings: retries(seconds(2), seconds(1)),
    says: ['minimum_backoff', '2000', 'maximum_backoff', '1000'],
  },
  { what: 'a filter of 257 bytes', settings: { filter: filter(' ') }, says: ['filter', '257', '256'], google: anyFilter },
  { what: 'a filter that is none', settings: { filter: 'attributes.a = b' }, says: ['filter', 'double quotes', '15'], google: anyFilter },
  { what: 'a filter on data', settings: { filter: 'data:"a"' }, says: ['filter', '"attributes"', '1'], google: anyFilter },
  {
    what: 'AND beside OR',
    settings: { filter: 'attributes:a AND attributes:b OR attributes:c' },
    says: ['filter', 'AND', '30'],
    google: anyFilter,
  },
  { what: 'a push endpoint that is no URL', settings: push('localhost'), says: ['push', '"localhost"'] },
  { what: 'a push endpoint of another scheme', settings: push('ftp://127.0.0.1/'), says: ['push', '"ftp://127.0.0.1/"'] },
];

const taken: Record<string, Readonly<Record<string, unknown>> & { readonly google?: Exception }> = {
  'an ack deadline of 10 s': { ackDeadlineSeconds: 10 },
  'an ack deadline of 600 s': { ackDeadlineSeconds: 600 },
  'a retention of 10 min': retention(seconds(600)),
  'a retention of 31 d': { ...retention(seconds(31 * day)), google: { differs: 'takes at most 7 d' } },
  'a ttl of a day': { expirationPolicy: { ttl: seconds(day) } },
  'no expiration': { expirationPolicy: {} },
  '5 delivery attempts': deadLetters(5),
  '100 delivery attempts': deadLetters(100),
  'no backoff': retries(seconds(0), seconds(0)),
  'a backoff of 600 s': retries(seconds(600), seconds(600)),
  'a filter of 256 bytes': { filter: filter() },
};

for (const target of pubsubTargets(embedded)) {
  describe(`Pub/Sub bad settings: ${target.name}`, () => {
    const client = wireClient(target.address);
    const ask = asking(client, methods);
    beforeAll(async () => {
      await prepare(ask, [
        ...[topic, dead].map((name) => ({ method: 'CreateTopic', request: { name } })),
        { method: 'CreateSubscription', request: { name: worker, topic } },
      ]);
    });
    afterAll(() => client.close());
    refuses(
      target,
      ask,
      refused.map(({ settings, ...row }) => ({ ...row, ...made(settings) })),
    );
    refuses(target, ask, [
      {
        what: 'a topic retention below 10 min',
        method: 'CreateTopic',
        request: { name: `${project}/topics/short`, ...retention(seconds(599)) },
        says: ['message_retention_duration', '599', '600 to 2678400'],
      },
      {
        what: 'a change of the ack deadline to 9 s',
        method: 'UpdateSubscription',
        request: { subscription: { name: worker, ackDeadlineSeconds: 9 }, updateMask: { paths: ['ack_deadline_seconds'] } },
        says: ['ack_deadline_seconds', '9', '10 to 600'],
        google: accepts9,
      },
    ]);
    takes(
      target,
      ask,
      Object.entries(taken).map(([what, { google, ...settings }]) => ({ what, ...made(settings), ...(google && { google }) })),
    );
  });
}
