import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { encodedFields, encoderOf, fieldBytes, type RawClient, rawClient } from '../../../bench/emulator/raw-client.ts';
import { inLanes, type Part, textOf, untilKilled } from './part.ts';

const location = 'projects/crash/locations/europe-west1';
const service = '/google.cloud.tasks.v2.CloudTasks';
const dueNow = `${location}/queues/now`;
const dueLater = `${location}/queues/later`;
const hourSeconds = 3_600;
const lanes = 4;
const deletedShare = 0.3;
/** So many deleted names are asked for again after each kill. */
const namesAsked = 10;
const alreadyExists = 6;
const quietMs = 5_000;

/** Tasks due at once, which a server of this process answers with 200, and tasks due in an hour, of which some are deleted. */
export async function tasksPart(random: () => number): Promise<Part> {
  const encode = encoderOf('@google-cloud/tasks', 'protos.json');
  const now = new Set<string>();
  const later = new Set<string>();
  const deleted = new Set<string>();
  const uncertain = new Set<string>();
  /** With the number of the process that dispatched it last. */
  const dispatched = new Map<string, number>();
  const repeated = new Set<string>();
  let processes = 1;
  let serial = 0;
  let lastMs = 0;
  const target = createServer((request, response) => {
    const name = `${dueNow}/tasks/${request.headers['x-cloudtasks-taskname']}`;
    const before = dispatched.get(name);
    // A kill between the 200 and its record is the one documented repeat, by the process that follows.
    if (before !== undefined && before !== processes - 1) repeated.add(name);
    dispatched.set(name, processes);
    lastMs = performance.now();
    request.resume().once('end', () => response.end());
  });
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/`;

  const createTask = (client: RawClient, parent: string, name: string) => {
    const scheduleTime = { seconds: Math.floor(Date.now() / 1_000) + (parent === dueLater ? hourSeconds : 0) };
    const task = { name, scheduleTime, httpRequest: { url, httpMethod: 'POST' } };
    return client.unary(`${service}/CreateTask`, encode('google.cloud.tasks.v2.CreateTaskRequest', { parent, task }));
  };
  const create = async (client: RawClient) => {
    const [parent, book] = random() < 0.5 ? ([dueNow, now] as const) : ([dueLater, later] as const);
    const name = `${parent}/tasks/task-${++serial}`;
    await createTask(client, parent, name);
    book.add(name);
  };
  const remove = async (client: RawClient) => {
    const [name] = later;
    if (name === undefined) return;
    later.delete(name);
    uncertain.add(name);
    await client.unary(`${service}/DeleteTask`, encodedFields(1, [Buffer.from(name)]));
    uncertain.delete(name);
    deleted.add(name);
  };
  const listLater = async (client: RawClient): Promise<Set<string>> => {
    const names = new Set<string>();
    let pageToken = '';
    do {
      const request = encode('google.cloud.tasks.v2.ListTasksRequest', { parent: dueLater, pageSize: 1_000, pageToken });
      const page = await client.unary(`${service}/ListTasks`, request);
      for (const task of fieldBytes(page, 1)) names.add(textOf(fieldBytes(task, 1)[0]));
      pageToken = textOf(fieldBytes(page, 2)[0]);
    } while (pageToken !== '');
    return names;
  };
  const isTaken = (client: RawClient, name: string) =>
    createTask(client, dueLater, name).then(
      () => false,
      (error: { code?: number }) => error.code === alreadyExists,
    );

  return {
    async prepare({ tasks }) {
      const client = rawClient(tasks);
      for (const name of [dueNow, dueLater]) {
        const queue = { name, rateLimits: { maxDispatchesPerSecond: 500 } };
        await client.unary(`${service}/CreateQueue`, encode('google.cloud.tasks.v2.CreateQueueRequest', { parent: location, queue }));
      }
      client.close();
    },
    async load({ tasks }, isKilled) {
      const client = rawClient(tasks);
      await inLanes(lanes, () => untilKilled(isKilled, () => (random() < deletedShare ? remove : create)(client)));
      client.close();
    },
    async check({ tasks }) {
      processes += 1;
      const client = rawClient(tasks);
      lastMs = performance.now();
      const undispatched = () => [...now].filter((name) => !dispatched.has(name));
      while (undispatched().length > 0 && performance.now() - lastMs < quietMs) await pause(20);
      const listed = await listLater(client);
      const missing = [...undispatched(), ...[...later].filter((name) => !listed.has(name))];
      const back = [...deleted].filter((name) => listed.has(name));
      const asked = [...deleted].slice(-namesAsked).filter((name) => !back.includes(name));
      const free: string[] = [];
      for (const name of asked) if (!(await isTaken(client, name))) free.push(name);
      client.close();
      const again = [...repeated];
      repeated.clear();
      const confirmed = now.size + later.size;
      now.clear();
      for (const name of missing) later.delete(name);
      for (const name of [...back, ...free]) deleted.delete(name);
      for (const name of uncertain) (listed.has(name) ? later : deleted).add(name);
      uncertain.clear();
      return [
        { promise: 'a task is there or was dispatched', confirmed, lost: missing, repeated: again },
        { promise: 'a deleted task stays deleted', confirmed: deleted.size, lost: back, repeated: [] },
        { promise: 'the name of a deleted task stays taken', confirmed: asked.length, lost: free, repeated: [] },
      ];
    },
    close() {
      target.closeAllConnections();
      target.close();
    },
  };
}
