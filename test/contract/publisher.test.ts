import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pubsubPublisher } from '../../src/shared/adapters/pubsub.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { listenTo } from '../support/received.ts';

let backend: Backend;
let pubsub: PubSub;
const projectId = 'ptk-publisher';

beforeAll(async () => {
  backend = await startBackend();
  pubsub = new PubSub({ projectId, apiEndpoint: backend.pubsub.address });
});

afterAll(async () => {
  await pubsub.close();
  await backend.close();
});

describe('Publisher on Pub/Sub', () => {
  test('publishes in the order given, byte for byte, and tells the ids', async () => {
    await pubsub.createTopic('bytes');
    const inbox = await listenTo(pubsub, 'bytes');
    const data = Uint8Array.from([0, 255, 128]);
    const attributes = { text: 'a {{projectId}} b', 'ptk-key': 'k' };
    const ids = await pubsubPublisher(pubsub).publish('bytes', [
      { data, attributes },
      { data: Buffer.from('{{projectId}}'), attributes: {} },
    ]);
    const received = await inbox.count(2);
    expect(ids).toEqual(expect.arrayContaining(received.map(({ id }) => id)));
    const [first, second] = ids.map((id) => received.find((message) => message.id === id));
    expect([[...(first?.data ?? [])], first?.attributes]).toEqual([[0, 255, 128], attributes]);
    expect(`${second?.data}`).toBe('{{projectId}}');
    await inbox.close();
  });

  test('a topic that is not there may come yet, and a message that is refused never will', async () => {
    await pubsub.createTopic('strict');
    const publisher = pubsubPublisher(pubsub);
    const message = { data: Buffer.from('x'), attributes: {} };
    await expect(publisher.publish('nowhere', [message])).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    await expect(publisher.publish('strict', [{ data: Buffer.alloc(0), attributes: {} }])).rejects.toMatchObject({ code: 'REFUSED' });
    const full = `projects/${projectId}/topics/strict`;
    expect(await publisher.publish(full, [message])).toHaveLength(1);
  });

  test('a client that is closed publishes no more', async () => {
    const closed = new PubSub({ projectId, apiEndpoint: backend.pubsub.address });
    await closed.close();
    const publishing = pubsubPublisher(closed).publish('strict', [{ data: Buffer.from('x'), attributes: {} }]);
    await expect(publishing).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  });
});
