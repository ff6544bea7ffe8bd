import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { queue } from '../../examples/setting.ts';
import { freePort } from '../../src/cli/demo/processes.ts';
import { cloudTasksClient } from '../../src/shared/adapters/cloud-tasks.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { type Deployed, startAppEngine } from '../support/deployables.ts';
import { listenTo } from '../support/received.ts';

/** The examples of the README, as they stand there, on the emulator that a user would start. */
let emulator: Backend;
let appEngine: Deployed;
let pubsub: PubSub;
const before = { ...process.env };

beforeAll(async () => {
  const port = String(await freePort());
  emulator = await startBackend({ appEngineUrl: `http://127.0.0.1:${port}` });
  const env = { ...emulator.env, GOOGLE_CLOUD_PROJECT: 'ptk-example' };
  Object.assign(process.env, env);
  appEngine = await startAppEngine({ ...env, PORT: port, FINAL_TOPIC: 'due', TASK_QUEUES: queue });
  pubsub = new PubSub();
  await pubsub.createTopic('due');
  const tasks = cloudTasksClient('ptk-example', emulator.env.CLOUD_TASKS_EMULATOR_HOST);
  await tasks.createQueue({ parent: queue.slice(0, queue.indexOf('/queues/')), queue: { name: queue } });
  await tasks.close();
});

afterAll(async () => {
  await appEngine.kill();
  await pubsub.close();
  await emulator.close();
  process.env = before;
});

async function withOrders(run: () => Promise<void>): Promise<void> {
  const [topic] = await pubsub.createTopic('orders');
  const retryPolicy = { minimumBackoff: { nanos: 50_000_000 }, maximumBackoff: { seconds: 1 } };
  const [subscription] = await topic.createSubscription('orders', { retryPolicy });
  await run();
  await subscription.delete();
  await topic.delete();
}

/** Resolves once so many calls were made. */
function calls<T>(times: number) {
  const made: T[] = [];
  let finish = () => {};
  const done = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const call = async (given: T) => {
    made.push(given);
    if (made.length >= times) finish();
  };
  return { made, call, done };
}

describe('examples', () => {
  test('once: an order published twice is charged once', () =>
    withOrders(async () => {
      const { chargeOnce } = await import('../../examples/dedup.ts');
      const { made, call, done } = calls<string>(1);
      const pull = await chargeOnce(call);
      await done;
      await pull.close();
      expect(made).toEqual(['order-17']);
    }));

  test('later: a reminder comes to the final topic once it is due', () =>
    withOrders(async () => {
      const { remindIn } = await import('../../examples/delay.ts');
      const due = await listenTo(pubsub, 'due');
      const startedAtMs = performance.now();
      const pull = await remindIn(400);
      const [reminder] = await due.count(1);
      expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(400);
      expect(reminder?.data.toString()).toBe('call back');
      await Promise.all([pull.close(), due.close()]);
    }));

  test('in order: the steps of an order are handled 1, 2, 3 though the broker shuffles them', () =>
    withOrders(async () => {
      emulator.faults.replace([{ kind: 'reorder', probability: 0.5, delayMs: 200 }]);
      const { followOrder } = await import('../../examples/fifo.ts');
      const { made, call, done } = calls<string>(4);
      const pull = await followOrder(['placed', 'paid', 'packed', 'sent'], call);
      await done;
      await pull.close();
      expect(made).toEqual(['placed', 'paid', 'packed', 'sent']);
    }));
});
