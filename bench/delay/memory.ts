import { cloudTasksClient, cloudTasksScheduler } from '../../src/shared/adapters/cloud-tasks.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { createDelay } from '../../src/shared/delay/delay.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { rssAtRest } from '../emulator/memory.ts';
import { startOurs } from '../emulator/servers.ts';
import { createQueues, projectId, queues } from './stack.ts';

const pending = 100_000;
const lanes = 50;

/** Resident memory of the emulator at rest with 100,000 tasks, of messages of 100 bytes, that are due in an hour. */
export async function pending100kRssMb(): Promise<number> {
  const ours = await startOurs();
  const client = cloudTasksClient(projectId, ours.addresses.tasks);
  await createQueues(client);
  const handle = createDelay({
    publisher: {
      publish: async () => {
        throw new Error('a message went on at once');
      },
    },
    scheduler: cloudTasksScheduler({ client, release: {}, system }),
    queues,
    finalTopic: 'final',
    system,
    log: silentLog,
  });
  const signal = new AbortController().signal;
  let message = 0;
  const lane = async () => {
    while (message < pending) {
      const given = { messageId: String(++message), data: Buffer.alloc(100, 'x'), publishTimeMs: Date.now() };
      const { reason } = await handle(testMessage({ ...given, attributes: { 'ptk-delay-ms': '3600000' } }), { signal });
      if (reason !== 'scheduled') throw new Error(`a message was ${reason}`);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  const busyMb = ours.rssMb();
  const rssMb = await rssAtRest(ours);
  console.log(`with ${pending} tasks: ${busyMb.toFixed(0)} MiB as the last one came, at rest ${rssMb.toFixed(0)}`);
  await client.close();
  await ours.stop();
  return rssMb;
}
