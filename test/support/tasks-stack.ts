import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { CloudTasksClient, type protos } from '@google-cloud/tasks';
import grpc from '@grpc/grpc-js';
import { createFaults } from '../../src/emulator/faults.ts';
import { type Journal, noJournal } from '../../src/emulator/journal.ts';
import { listen } from '../../src/emulator/listen.ts';
import { createIdentity } from '../../src/emulator/oidc.ts';
import { createTasksEmulator } from '../../src/emulator/tasks/service.ts';
import { type ManualTime, manualTime } from '../../src/emulator/time.ts';
import type { Target } from './targets.ts';

export type TaskRequest = protos.google.cloud.tasks.v2.ITask;
export type QueueConfig = Omit<protos.google.cloud.tasks.v2.IQueue, 'name'>;
export type Received = {
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly bytes: Buffer;
  readonly atMs: number;
};

/** An App Engine app that writes down what it is sent and answers 200, or what `answers` holds for the path. */
export async function startApp(time: ManualTime) {
  const received: Received[] = [];
  const answers = new Map<string, (answer: ServerResponse, attempt: number) => void>();
  const server = createServer(async (request, answer) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const path = request.url ?? '';
    const bytes = Buffer.concat(chunks);
    const attempt = received.push({
      path,
      method: request.method ?? '',
      headers: request.headers,
      body: bytes.toString(),
      bytes,
      atMs: time.nowMs(),
    });
    const before = received.slice(0, attempt - 1).filter((other) => other.path === path).length;
    const respond = answers.get(path);
    if (respond) respond(answer, before);
    else answer.end('done');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    received: (path: string) => received.filter((request) => request.path === path),
    answer(path: string, respond: (answer: ServerResponse, attempt: number) => void): void {
      answers.set(path, respond);
    },
    answerStatus(path: string, ...statuses: number[]): void {
      answers.set(path, (answer, attempt) => void answer.writeHead(statuses[Math.min(attempt, statuses.length - 1)] ?? 200).end());
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function tasksClient(address: string): CloudTasksClient {
  const [host = '', port = ''] = address.split(':');
  return new CloudTasksClient({
    apiEndpoint: host,
    port: Number(port),
    sslCreds: grpc.credentials.createInsecure(),
    projectId: 'ptk-test',
  });
}

const location = 'projects/ptk-test/locations/europe-west1';

export type TasksStackOptions = { readonly startAtMs?: number; readonly journal?: Journal; readonly withoutApp?: boolean };

/** The emulator on manual time, an App Engine app and the real client. */
export async function startTasksStack({ startAtMs, journal = noJournal, withoutApp }: TasksStackOptions = {}) {
  const time = manualTime(startAtMs);
  const app = await startApp(time);
  const faults = createFaults();
  const identity = createIdentity(time);
  const emulator = createTasksEmulator({ time, faults, journal, identity, appEngineUrl: withoutApp ? undefined : app.url });
  const server = await listen(emulator.register, 0);
  const client = tasksClient(server.address);
  const target: Target = { name: 'embedded', address: server.address };
  return {
    time,
    app,
    client,
    target,
    location,
    faults,
    identity,
    emulator,
    async createQueue(id: string, config: QueueConfig = {}): Promise<string> {
      const name = `${location}/queues/${id}`;
      await client.createQueue({ parent: location, queue: { ...config, name } });
      return name;
    },
    /** Adds an App Engine task, named if an id is given. */
    async createTask(queue: string, relativeUri: string, { id, ...task }: TaskRequest & { id?: string } = {}) {
      const [created] = await client.createTask({
        parent: queue,
        task: { appEngineHttpRequest: { relativeUri }, ...task, ...(id !== undefined && { name: `${queue}/tasks/${id}` }) },
      });
      return created;
    },
    async close(): Promise<void> {
      await client.close();
      emulator.close();
      time.close();
      await server.close();
      journal.close();
      await app.close();
    },
  };
}

/** The gRPC code that a call is refused with; OK when it is not. */
export async function codeOf(call: Promise<unknown>): Promise<string | undefined> {
  try {
    await call;
    return 'OK';
  } catch (error) {
    return grpc.status[(error as grpc.ServiceError).code];
  }
}

export const seconds = (count: number) => ({ seconds: count });

export const atTime = (ms: number) => ({ seconds: Math.floor(ms / 1000), nanos: Math.round((ms % 1000) * 1_000_000) });

export const msOf = (time: protos.google.protobuf.ITimestamp | null | undefined) =>
  Number(time?.seconds) * 1000 + Number(time?.nanos) / 1_000_000;
