import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { system } from '../../src/shared/adapters/system.ts';
import { startPull } from '../../src/shared/transports/pull.ts';
import { ack } from '../../src/shared/verdict.ts';
import { keptDeadLetters, silentLog } from '../../src/testing/doubles.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { gate } from '../support/manual-system.ts';

let emulator: Backend;
let pubsub: PubSub;

beforeAll(async () => {
  emulator = await startBackend();
  pubsub = new PubSub({ projectId: 'ptk-pull', apiEndpoint: emulator.pubsub.address, emulatorMode: true });
});

afterAll(async () => {
  await pubsub.close();
  await emulator.close();
});

test('with the real client, a message whose handler ends during close is acked and does not come again', async () => {
  const [topic] = await pubsub.createTopic('orders');
  await topic.createSubscription('orders-pull');
  const started = gate();
  const hold = gate();
  const pull = startPull({
    subscription: pubsub.subscription('orders-pull'),
    handle: async () => {
      started.open();
      await hold.opened;
      return ack('processed');
    },
    deadLetters: keptDeadLetters(),
    system,
    log: silentLog,
  });
  await topic.publishMessage({ data: Buffer.from('x') });
  await started.opened;
  const closed = pull.close();
  hold.open();
  await closed;

  const last = gate();
  const received: string[] = [];
  const again = startPull({
    subscription: pubsub.subscription('orders-pull'),
    handle: async ({ data }) => {
      const text = Buffer.from(data).toString();
      received.push(text);
      if (text === 'last') last.open();
      return ack('processed');
    },
    deadLetters: keptDeadLetters(),
    system,
    log: silentLog,
  });
  await topic.publishMessage({ data: Buffer.from('last') });
  await last.opened;
  await again.close();
  expect(received).toEqual(['last']);
});
