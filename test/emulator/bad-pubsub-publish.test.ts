import { afterAll, beforeAll, describe } from 'vitest';
import { readProtos } from '../../src/emulator/grpc.ts';
import type { Exception } from '../support/targets.ts';
import { asking, prepare, type Refused, refuses, takes } from './bad-input.ts';
import { embeddedPubsub, pubsubTargets } from './pubsub-targets.ts';
import { methodsOf, wireClient } from './wire-client.ts';

const embedded = await embeddedPubsub();
afterAll(embedded.stop);

const methods = methodsOf(readProtos('@google-cloud/pubsub', 'protos.json'), 'google.pubsub.v1.Publisher');
const project = `projects/ptk-publish-${process.pid}`;
const topic = `${project}/topics/orders`;

const published = (...messages: object[]) => ({ method: 'Publish', request: { topic, messages } });
const data = Buffer.from('a');
const many = (count: number) => Array<object>(count).fill({ data });
const attributes = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, '']));
/** So many bytes, the first two of one character. */
const text = (bytes: number) => `é${'a'.repeat(bytes - 2)}`;
const accepted: Exception = { differs: 'takes attributes of any number and length' };

const refused: Refused[] = [
  { what: 'no messages', ...published(), says: ['messages'] },
  { what: 'a message of nothing', ...published({}), says: ['data', 'attribute'] },
  { what: '1,001 messages', ...published(...many(1_001)), says: ['messages', '1001', '1000'] },
  {
    what: '10,000,001 bytes',
    ...published({ data: Buffer.alloc(10_000_000) }, { data }),
    says: ['messages', '10000001 bytes', '10000000'],
    withinMs: 1_000,
    google: { differs: 'takes up to 10 MiB' },
  },
  { what: '101 attributes', ...published({ attributes: attributes(101) }), says: ['attributes', '101', '100'], google: accepted },
  {
    what: 'an attribute name of 257 bytes',
    ...published({ attributes: { [text(257)]: '' } }),
    says: ['attribute name', '257', '256'],
    google: accepted,
  },
  {
    what: 'an attribute without a name',
    ...published({ attributes: { '': 'a' } }),
    says: ['attribute name', '0', '256'],
    google: accepted,
  },
  {
    what: 'an attribute value of 1,025 bytes',
    ...published({ attributes: { kind: text(1_025) } }),
    says: ['value of attribute kind', '1025', '1024'],
    google: accepted,
  },
  {
    what: 'an ordering key of 1,025 bytes',
    ...published({ data, orderingKey: text(1_025) }),
    says: ['ordering key', '1025', '1024'],
    google: { differs: 'takes keys of any length' },
  },
  {
    what: 'messages of two ordering keys',
    ...published({ data, orderingKey: 'first' }, { data, orderingKey: 'second' }),
    says: ['ordering key', '"first"', '"second"'],
    google: { differs: 'takes mixed keys' },
  },
  {
    what: 'a missing topic',
    method: 'Publish',
    request: { topic: `${project}/topics/gone`, messages: many(1) },
    code: 'NOT_FOUND',
    says: [`${project}/topics/gone`],
  },
];

for (const target of pubsubTargets(embedded)) {
  describe(`Pub/Sub bad messages: ${target.name}`, () => {
    const client = wireClient(target.address);
    const ask = asking(client, methods);
    beforeAll(async () => {
      await prepare(ask, [{ method: 'CreateTopic', request: { name: topic } }]);
    });
    afterAll(() => client.close());
    refuses(target, ask, refused);
    takes(target, ask, [
      { what: '1,000 messages', ...published(...many(1_000)) },
      { what: '10,000,000 bytes', ...published({ data: Buffer.alloc(9_999_999) }, { data }) },
      { what: '100 attributes', ...published({ attributes: attributes(100) }) },
      { what: 'an attribute name of 256 bytes and a value of 1,024', ...published({ attributes: { [text(256)]: text(1_024) } }) },
      { what: 'an ordering key of 1,024 bytes', ...published({ data, orderingKey: text(1_024) }) },
    ]);
  });
}
