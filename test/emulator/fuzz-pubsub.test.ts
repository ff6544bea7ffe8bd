import { afterAll } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { fuzzService } from './fuzz-service.ts';
import { embeddedPubsub } from './pubsub-targets.ts';
import { wireService } from './wire-client.ts';

const embedded = await embeddedPubsub(manualTime());
afterAll(embedded.stop);
const { client, methods, ask } = wireService('pubsub', embedded.target.address);

const project = 'projects/fuzz';
const [topic, dead, endpoint] = [`${project}/topics/orders`, `${project}/topics/dead`, 'http://127.0.0.1:1/'];
const [plain, ordered, once, pushed] = ['plain', 'ordered', 'once', 'pushed'].map((id) => `${project}/subscriptions/${id}`);
const subscriptions = [plain, ordered, once, pushed].map(String);
const snapshots = [`${project}/snapshots/kept`, `${project}/snapshots/new`];
const masks = ['labels', 'ack_deadline_seconds', 'push_config', 'message_retention_duration', 'dead_letter_policy', 'retry_policy'];

fuzzService({
  name: 'Pub/Sub',
  client,
  methods,
  plausible: {
    'Topic.name': [topic, `${project}/topics/new`],
    'Subscription.name': [...subscriptions, `${project}/subscriptions/new`],
    'CreateSnapshotRequest.name': snapshots,
    'Snapshot.name': snapshots,
    snapshot: snapshots,
    target: [],
    topic: [topic, dead],
    messages: [],
    data: ['a'],
    attributes: [],
    updateMask: [],
    returnImmediately: [],
    maxMessages: [],
    ackDeadlineSeconds: [],
    deadLetterTopic: [dead],
    subscription: subscriptions,
    project: [project],
    pageToken: ['', '1'],
    paths: [...masks, ...masks, 'filter', 'state', 'pushConfig'],
    pushEndpoint: ['', endpoint, 'http://[', 'ftp://127.0.0.1/'],
    filter: ['', 'attributes:a', 'NOT attributes.a = "b"', 'hasPrefix(attributes.a, "")', '((attributes:a', 'attributes.a != "\\'],
    ackIds: ['1', '2', 'orders-1'],
    orderingKey: ['', 'k'],
    'attributes.key': ['a', 'x-goog-version'],
  },
  async prepare() {
    embedded.reset();
    for (const name of [topic, dead]) await ask('CreateTopic', { name });
    await ask('CreateSubscription', { topic, name: plain, deadLetterPolicy: { deadLetterTopic: dead } });
    await ask('CreateSubscription', { topic, name: ordered, enableMessageOrdering: true });
    await ask('CreateSubscription', { topic, name: once, enableExactlyOnceDelivery: true });
    // A push that fails is tried again at once, and nobody listens there.
    const retryPolicy = { minimumBackoff: { seconds: 600 } };
    await ask('CreateSubscription', { topic, name: pushed, pushConfig: { pushEndpoint: endpoint }, retryPolicy });
    await ask('CreateSnapshot', { name: snapshots[0], subscription: plain });
  },
  live: () => ask('ListTopics', { project }),
  waiting: ['Pull'],
});
