import { afterAll, beforeAll, describe } from 'vitest';
import { readProtos } from '../../src/emulator/grpc.ts';
import { asking, prepare, type Refused, refuses, type Taken, takes } from './bad-input.ts';
import { embeddedPubsub, pubsubTargets } from './pubsub-targets.ts';
import { methodsOf, wireClient } from './wire-client.ts';

const embedded = await embeddedPubsub();
afterAll(embedded.stop);

const protos = readProtos('@google-cloud/pubsub', 'protos.json');
const methods = ['Publisher', 'Subscriber'].flatMap((service) => methodsOf(protos, `google.pubsub.v1.${service}`));
const project = `projects/ptk-bad-${process.pid}`;
const [topic, gone] = [`${project}/topics/orders`, `${project}/topics/gone`];
const subscription = (id: string) => `${project}/subscriptions/${id}`;
const [worker, once, pushed, detached, missing] = ['worker', 'once', 'pushed', 'detached', 'missing'].map(subscription);
const pushConfig = { pushEndpoint: 'http://127.0.0.1:1/' };
/** In ids of the length that they have, for a long one would break Google's connection. */
const ackIds = (bytes: number) => [...Array<string>(4_095).fill(`0-${'1'.repeat(126)}`), '0-'.padEnd(bytes - 4_095 * 128, '1')];
const ofItsOwn = { notApplicable: 'it has ack ids of its own' };
const anyPage = { differs: 'answers the first page' };
const longNames = { differs: 'answers INTERNAL' };
const noDetach = { notApplicable: 'it has no DetachSubscription' };

const topicNamed = (id: string) => ({ method: 'CreateTopic', request: { name: `${project}/topics/${id}` } });
const updated = (change: object, ...paths: string[]) => ({
  method: 'UpdateSubscription',
  request: { subscription: { name: worker, ...change }, updateMask: { paths } },
});
const streamed = (...later: object[]) => ({
  method: 'StreamingPull',
  request: [{ subscription: worker, streamAckDeadlineSeconds: 10 }, ...later],
});
const paged = (paging: object) => ({ method: 'ListTopics', request: { project, ...paging } });
const ofNames = '3 to 255 of A-Z, a-z, 0-9 and -_.~+%';

const refused: Refused[] = [
  { what: 'a topic that exists', ...topicNamed('orders'), code: 'ALREADY_EXISTS', says: [topic] },
  ...['or', 'o'.repeat(256), '1st', 'googles', 'or$ders', 'order items'].map((id) => {
    return { what: `a topic id that is "${id.slice(0, 12)}"`, ...topicNamed(id), says: [id, ofNames] };
  }),
  { what: 'a topic id of 1,000,000 characters', ...topicNamed('é'.repeat(1_000_000)), says: ['1000', ofNames], google: longNames },
  { what: 'a topic id of 1,000 smileys', ...topicNamed('😀'.repeat(1_000)), says: ['😀', ofNames], google: longNames },
  {
    what: 'a topic without a project',
    method: 'CreateTopic',
    request: { name: 'topics/orders' },
    says: ['"topics/orders"', 'projects/PROJECT'],
  },
  {
    what: 'a project that is none',
    method: 'ListTopics',
    request: { project: 'projects/' },
    says: ['"projects/"', 'projects/PROJECT'],
    google: { differs: 'lists nothing' },
  },
  {
    what: 'ListTopicSubscriptions of a missing topic',
    method: 'ListTopicSubscriptions',
    request: { topic: gone },
    code: 'NOT_FOUND',
    says: [gone],
    google: { differs: 'lists nothing' },
  },
  ...['GetTopic', 'DeleteTopic'].map((method) => {
    return { what: `${method} of a missing topic`, method, request: { topic: gone }, code: 'NOT_FOUND', says: [gone] };
  }),
  { what: 'UpdateTopic without a mask', method: 'UpdateTopic', request: { topic: { name: topic } }, says: ['update_mask'] },
  {
    what: 'UpdateTopic of an unknown field',
    method: 'UpdateTopic',
    request: { topic: { name: topic }, updateMask: { paths: ['colour'] } },
    says: ['update_mask', '"colour"'],
  },
  ...['GetSubscription', 'DeleteSubscription'].map((method) => {
    return { what: `${method} of a missing one`, method, request: { subscription: missing }, code: 'NOT_FOUND', says: [`${missing}`] };
  }),
  {
    what: 'Pull of a missing subscription',
    method: 'Pull',
    request: { subscription: missing, maxMessages: 1 },
    code: 'NOT_FOUND',
    says: [`${missing}`],
  },
  {
    what: 'Acknowledge of a missing subscription',
    method: 'Acknowledge',
    request: { subscription: missing, ackIds: ['0-1'] },
    code: 'NOT_FOUND',
    says: [`${missing}`],
  },
  {
    what: 'StreamingPull of a missing subscription',
    method: 'StreamingPull',
    request: { subscription: missing, streamAckDeadlineSeconds: 10 },
    code: 'NOT_FOUND',
    says: [`${missing}`],
    google: { differs: 'ends the stream with OK once its client has closed it' },
  },
  {
    what: 'UpdateSubscription of a missing one',
    method: 'UpdateSubscription',
    request: { subscription: { name: missing }, updateMask: { paths: ['labels'] } },
    code: 'NOT_FOUND',
    says: [`${missing}`],
  },
  { what: 'an unknown mask path', ...updated({}, 'colour'), says: ['update_mask', '"colour"'] },
  { what: 'an empty mask', ...updated({}), says: ['update_mask'] },
  { what: 'a filter in a mask', ...updated({ filter: 'attributes:b' }, 'filter'), says: ['update_mask', '"filter"'] },
  {
    what: 'a new dead-letter topic that is missing',
    ...updated({ deadLetterPolicy: { deadLetterTopic: gone } }, 'dead_letter_policy'),
    code: 'NOT_FOUND',
    says: [gone],
  },
  { what: 'a pull of no messages', method: 'Pull', request: { subscription: worker, maxMessages: 0 }, says: ['max_messages', '0'] },
  {
    what: 'a pull from a push subscription',
    method: 'Pull',
    request: { subscription: pushed, maxMessages: 1 },
    code: 'FAILED_PRECONDITION',
    says: ['push'],
    google: { differs: 'answers no messages' },
  },
  {
    what: 'a pull from a detached subscription',
    method: 'Pull',
    request: { subscription: detached, maxMessages: 1 },
    code: 'FAILED_PRECONDITION',
    says: ['detached'],
    google: noDetach,
  },
  { what: 'what is no ack id', method: 'Acknowledge', request: { subscription: worker, ackIds: ['a'] }, says: ['ack_ids', '"a"'] },
  {
    what: 'what is no ack id to extend',
    method: 'ModifyAckDeadline',
    request: { subscription: worker, ackIds: ['a'] },
    says: ['ack_ids', '"a"'],
  },
  { what: 'what is no ack id on a stream', ...streamed({ ackIds: ['a'] }), says: ['ack_ids', '"a"'] },
  {
    what: '5,000 stale ack ids under exactly-once delivery',
    method: 'Acknowledge',
    request: { subscription: once, ackIds: Array.from({ length: 5_000 }, (_, index) => `0-${index}`) },
    says: ['ErrorInfo'],
    google: ofItsOwn,
  },
  { what: 'no ack ids', method: 'Acknowledge', request: { subscription: worker }, says: ['ack_ids'] },
  {
    what: 'ack ids of 524,289 bytes',
    method: 'Acknowledge',
    request: { subscription: worker, ackIds: ackIds(524_289) },
    says: ['ack_ids', '524289', '524288'],
  },
  {
    what: 'ack ids of 524,289 bytes to extend',
    method: 'ModifyAckDeadline',
    request: { subscription: worker, ackIds: ackIds(524_289) },
    says: ['ack_ids', '524289', '524288'],
  },
  ...[-1, 601].map((ackDeadlineSeconds) => {
    const request = { subscription: worker, ackIds: ['0-1'], ackDeadlineSeconds };
    return {
      what: `a lease of ${ackDeadlineSeconds} s`,
      method: 'ModifyAckDeadline',
      request,
      says: ['ack_deadline_seconds', `${ackDeadlineSeconds}`, '0 to 600'],
    };
  }),
  { what: 'a subscription set again on a stream', ...streamed({ subscription: worker }), says: ['subscription', 'again'] },
  {
    what: 'flow control set again on a stream',
    ...streamed({ maxOutstandingMessages: 7 }),
    says: ['max_outstanding_messages', '7'],
    google: { differs: 'takes it' },
  },
  {
    what: 'leases on a stream without their ids',
    ...streamed({ modifyDeadlineSeconds: [10] }),
    says: ['modify_deadline_ack_ids', '0', 'modify_deadline_seconds', '1'],
  },
  {
    what: 'a negative lease on a stream',
    ...streamed({ modifyDeadlineSeconds: [-1], modifyDeadlineAckIds: ['0-1'] }),
    says: ['modify_deadline_seconds', '-1', '0 to 600'],
  },
  ...[9, 601].map((streamAckDeadlineSeconds) => {
    return {
      what: `a stream deadline of ${streamAckDeadlineSeconds} s`,
      ...streamed({ streamAckDeadlineSeconds }),
      says: ['stream_ack_deadline_seconds', `${streamAckDeadlineSeconds}`, '10 to 600'],
    };
  }),
  { what: 'a negative page size', ...paged({ pageSize: -1 }), says: ['page_size', '-1'], google: anyPage },
  { what: 'a page token of no page', ...paged({ pageToken: 'x' }), says: ['page_token', '"x"'], google: anyPage },
];

const taken: Taken[] = [
  ...['ord', 'o'.repeat(255), 'a-_.~+%9'].map((id) => ({ what: `a topic id that is "${id.slice(0, 12)}"`, ...topicNamed(id) })),
  {
    what: 'a stale ack id without exactly-once delivery',
    method: 'Acknowledge',
    request: { subscription: worker, ackIds: ['0-1'] },
    google: ofItsOwn,
  },
  { what: 'ack ids of 524,288 bytes', method: 'Acknowledge', request: { subscription: worker, ackIds: ackIds(524_288) }, google: ofItsOwn },
  ...[0, 600].map((ackDeadlineSeconds) => {
    return {
      what: `a lease of ${ackDeadlineSeconds} s`,
      method: 'ModifyAckDeadline',
      request: { subscription: worker, ackIds: ['0-1'], ackDeadlineSeconds },
      google: ofItsOwn,
    };
  }),
  ...[10, 600].map((streamAckDeadlineSeconds) => ({
    what: `a stream deadline of ${streamAckDeadlineSeconds} s`,
    ...streamed({ streamAckDeadlineSeconds }),
  })),
];

for (const target of pubsubTargets(embedded)) {
  describe(`Pub/Sub bad input: ${target.name}`, () => {
    const client = wireClient(target.address);
    const ask = asking(client, methods);
    beforeAll(async () => {
      const created = [{ name: worker }, { name: pushed, pushConfig }, { name: detached }, { name: once, enableExactlyOnceDelivery: true }];
      await prepare(ask, [
        topicNamed('orders'),
        ...created.map((settings) => ({ method: 'CreateSubscription', request: { topic, ...settings } })),
        ...(target.name === 'embedded' ? [{ method: 'DetachSubscription', request: { subscription: detached } }] : []),
      ]);
    });
    afterAll(() => client.close());
    refuses(target, ask, refused);
    takes(target, ask, taken);
  });
}
