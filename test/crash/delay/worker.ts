import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { cloudTasksClient } from '../../../src/shared/adapters/cloud-tasks.ts';
import { pubsubPublisher } from '../../../src/shared/adapters/pubsub.ts';
import { createDelaying, type Delaying } from './delaying.ts';
import { goOnPath, type Line, projectId, type Task, taskHeader, type WorkerPlan } from './plan.ts';

/** A worker process: `worker.ts PLAN`. Pushes, tasks and calls come to it as requests. */
const plan: WorkerPlan = JSON.parse(process.argv[2] ?? '');
const say = (line: Line) => console.log(JSON.stringify(line));
const fail = (error: unknown) => {
  say({ said: 'failed', reason: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  process.exit(1);
};
process.on('uncaughtException', fail);

const goOn = Promise.withResolvers<void>();
const parts = {
  db: new Firestore({ projectId }),
  publisher: pubsubPublisher(new PubSub({ projectId })),
  tasks: cloudTasksClient(projectId, process.env.CLOUD_TASKS_EMULATOR_HOST),
  mode: plan.mode,
  goesOn: goOn.promise,
  say,
};

/** One set for each way of a cell that is to be stopped or told; else one for all that go without the same. */
const known = new Map<string, Delaying>();
const delayingOf = (task: Task): Delaying => {
  const name = plan.mode === 'work' ? `${task.without} ${task.isUnrepaired}` : `${task.role} ${task.cell}`;
  const delaying = known.get(name) ?? createDelaying(parts, task);
  known.set(name, delaying);
  return delaying;
};

const server = createServer((request, response) => void answer(request, response).catch(fail));
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const address = server.address();
say({ said: 'ready', pid: process.pid, url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}` });

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.url === goOnPath) {
    goOn.resolve();
    response.end();
    return;
  }
  const task: Task = JSON.parse(String(request.headers[taskHeader] ?? ''));
  const { push, app, call, repair } = delayingOf(task);
  const body = async () => JSON.parse(await textOf(request));
  const send = (status: number, answered: unknown) => response.writeHead(status).end(JSON.stringify(answered));
  switch (request.url) {
    case '/push': {
      const { status } = await push(task, { headers: request.headers, body: await body() });
      response.writeHead(status).end();
      return;
    }
    case '/call':
      await call(await body()).then(
        (answered) => send(200, answered),
        (error: unknown) => send(503, String(error)),
      );
      return;
    case '/repair':
      await repair().then(
        (repaired) => send(200, repaired),
        (error: unknown) => send(503, String(error)),
      );
      return;
    default:
      app(request, response);
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
