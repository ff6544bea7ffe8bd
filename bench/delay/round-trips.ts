import { cloudTasksClient } from '../../src/shared/adapters/cloud-tasks.ts';
import { envelopeOf } from '../../src/shared/transports/push.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { type Deployed, post, startFunction } from '../../test/support/deployables.ts';
import { type Ours, startOurs } from '../emulator/servers.ts';
import { startCountingProxy } from './counting-proxy.ts';
import { createQueues, environmentOf, projectId, queues, type Side } from './stack.ts';

const messages = 20;
/** Connections are made, and the client's class of instants is known. */
const warmUp = 3;

/** Calls to Firestore and Cloud Tasks from a push to its 204, for each message, and which they are. */
export async function enqueueRoundTrips(): Promise<Readonly<Record<Side, number>>> {
  const ours = await startOurs();
  const tasks = cloudTasksClient(projectId, ours.addresses.tasks);
  await createQueues(tasks);
  await tasks.close();
  const counted = { plain: await countedCalls(ours, 'ids'), ledger: await countedCalls(ours, 'all') };
  await ours.stop();
  return counted;
}

async function countedCalls(ours: Ours, ledger: 'ids' | 'all'): Promise<number> {
  const [firestore, tasks] = await Promise.all([startCountingProxy(ours.addresses.firestore), startCountingProxy(ours.addresses.tasks)]);
  const delay = await startFunction('delay', {
    ...environmentOf({ ...ours, addresses: { ...ours.addresses, firestore: firestore.address, tasks: tasks.address } }),
    FINAL_TOPIC: 'final',
    TASK_QUEUES: queues.join(','),
    DELAY_LEDGER: ledger,
  });
  for (let message = 0; message < warmUp; message++) await pushed(delay, `warm-${ledger}-${message}`);
  const calls: string[] = [];
  const taken = () => [...firestore.taken(), ...tasks.taken()];
  taken();
  for (let message = 0; message < messages; message++) {
    await pushed(delay, `${ledger}-${message}`);
    calls.push(...taken());
  }
  await delay.kill();
  for (const proxy of [firestore, tasks]) proxy.close();
  const methods = new Set(calls.map((path) => path.slice(path.lastIndexOf('/') + 1)));
  console.log(`calls for a message, DELAY_LEDGER=${ledger}: ${[...methods].join(', ')}`);
  return calls.length / messages;
}

async function pushed(delay: Deployed, messageId: string): Promise<void> {
  const message = testMessage({ messageId, attributes: { 'ptk-delay-ms': '3600000' }, publishTimeMs: Date.now() });
  const status = await post(delay.url, envelopeOf(message));
  if (status !== 204) throw new Error(`the push of ${messageId} was answered ${status}`);
}
