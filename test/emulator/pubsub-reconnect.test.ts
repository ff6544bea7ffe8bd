import { afterAll, describe, expect } from 'vitest';
import { createFaults } from '../../src/emulator/faults.ts';
import { noJournal } from '../../src/emulator/journal.ts';
import { listen } from '../../src/emulator/listen.ts';
import { createPubsubEmulator } from '../../src/emulator/pubsub/service.ts';
import { realTime } from '../../src/emulator/time.ts';
import { statement, type Target } from '../support/targets.ts';
import { acking, withPubsub } from './pubsub-targets.ts';

const time = realTime();
const emulator = createPubsubEmulator({ time, faults: createFaults(), journal: noJournal });
let server = await listen(emulator.register, 0);
const target: Target = { name: 'embedded', address: server.address };
afterAll(async () => {
  emulator.close();
  time.close();
  await server.close();
});

describe('Pub/Sub reconnect', () => {
  statement(
    target,
    28,
    'a subscriber goes on by itself when its server goes down hard and comes back on the same port',
    withPubsub(target, async (pubsub) => {
      const [topic] = await pubsub.createTopic('orders');
      const { texts, errors } = await acking(topic);
      await topic.publishMessage({ data: Buffer.from('before') });
      await expect.poll(() => texts).toEqual(['before']);
      await expect.poll(() => emulator.backlog()).toBe(0);
      await server.close();
      await expect.poll(() => emulator.openStreams()).toEqual([]);
      server = await listen(emulator.register, Number(target.address.split(':').at(-1)));
      await topic.publishMessage({ data: Buffer.from('after') });
      await expect.poll(() => texts, { timeout: 10_000 }).toEqual(['before', 'after']);
      expect(errors).toEqual([]);
    }),
    { notApplicable: 'no test shuts it down' },
  );
});
