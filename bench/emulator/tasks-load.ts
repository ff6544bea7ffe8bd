import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { encoderOf, rawClient } from './raw-client.ts';

export type TasksLoad = {
  /** Creates so many tasks; how many a second came to their 200. */
  pass(tasks: number): Promise<number>;
  close(): Promise<void>;
};

/** One queue makes at most 500 dispatches a second. */
const queues = 16;
const lanes = 50;
const service = '/google.cloud.tasks.v2.CloudTasks';
const parent = 'projects/bench/locations/europe-west1';

/** HTTP tasks without a name, on queues at their highest rates, to a server of this process that answers 200. */
export async function openTasksLoad(address: string): Promise<TasksLoad> {
  const client = rawClient(address);
  const encode = encoderOf('@google-cloud/tasks', 'protos.json');
  let answered = 0;
  let onAnswer = () => {};
  const target = createServer((request, response) => {
    request.resume().once('end', () => {
      response.end();
      answered += 1;
      onAnswer();
    });
  });
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/`;
  const requests: Buffer[] = [];
  for (let queue = 1; queue <= queues; queue++) {
    const name = `${parent}/queues/load-${queue}`;
    const rateLimits = { maxDispatchesPerSecond: 500, maxConcurrentDispatches: 5_000 };
    await client.unary(
      `${service}/CreateQueue`,
      encode('google.cloud.tasks.v2.CreateQueueRequest', { parent, queue: { name, rateLimits } }),
    );
    const task = { httpRequest: { url, httpMethod: 'POST', body: Buffer.alloc(100, 'x') } };
    requests.push(encode('google.cloud.tasks.v2.CreateTaskRequest', { parent: name, task }));
  }
  return {
    async pass(tasks) {
      const startMs = performance.now();
      const last = answered + tasks;
      const allAnswered = new Promise<void>((resolve) => {
        onAnswer = () => {
          if (answered >= last) resolve();
        };
      });
      let created = 0;
      const lane = async () => {
        while (created < tasks) await client.unary(`${service}/CreateTask`, requests[created++ % queues] ?? Buffer.alloc(0));
      };
      await Promise.all([allAnswered, ...Array.from({ length: lanes }, lane)]);
      return (tasks * 1_000) / (performance.now() - startMs);
    },
    async close() {
      client.close();
      target.closeAllConnections();
      await new Promise((resolve) => target.close(resolve));
    },
  };
}
