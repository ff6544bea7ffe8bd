import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { pubsubPublisher } from '../../../src/shared/adapters/pubsub.ts';
import { system } from '../../../src/shared/adapters/system.ts';
import { deadLetterTopic } from '../../../src/shared/transports/dead-letters.ts';
import { startPull } from '../../../src/shared/transports/pull.ts';
import { createPush } from '../../../src/shared/transports/push.ts';
import { silentLog } from '../../../src/testing/doubles.ts';
import { startWalk, type Walk } from '../steps.ts';
import { deadTopic, type Line, projectId, type SenderCell, type WorkerPlan } from './plan.ts';
import { publishGroups, relayCell, relayOf } from './sending.ts';
import { createSubscriber } from './subscribing.ts';

/** A worker process: `worker.ts PLAN`. */
const plan: WorkerPlan = JSON.parse(process.argv[2] ?? '');
const say = (line: Line) => console.log(JSON.stringify(line));
const fail = (error: unknown) => {
  say({ said: 'failed', reason: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  process.exit(1);
};
process.on('uncaughtException', fail);

const betweenPassesMs = 300;

/** A process that stops has all of its cells at once; one that goes on with them is not to choke on them. */
const concurrency = plan.mode === 'work' ? 50 : 1_000;

const db = new Firestore({ projectId });
const pubsub = new PubSub({ projectId });
const publisher = pubsubPublisher(pubsub);
const parts = { db, publisher };
const deadLetters = deadLetterTopic(publisher, deadTopic);
const subscriber = createSubscriber({ db, deadLetters, plan, say });

for (const name of plan.subscriptions) {
  const subscription = pubsub.subscription(name, {
    streamingOptions: { maxStreams: 1 },
    flowControl: { maxMessages: concurrency },
    ...(plan.keepsAcks && { batching: { maxMilliseconds: 60_000 } }),
  });
  startPull({ subscription, handle: subscriber.handle, deadLetters, system, log: silentLog, options: { concurrency } });
}
say({ said: 'ready', pid: process.pid, pushUrl: plan.takesPushes ? await takePushes() : '' });

await Promise.all([
  ...plan.publishers.map((cell) =>
    walked(cell, (walk) =>
      publishGroups(parts, cell, walk, ({ key, sequence }) => say({ said: 'numbered', cell: cell.cell, key, sequence })),
    ),
  ),
  ...plan.relays.map((cell) => walked(cell, (walk) => relayCell(parts, cell, plan.leaseMs, walk))),
  ...plan.outboxes.map((outbox) => again(relayOf(parts, outbox, plan.leaseMs))),
  ...plan.sweeps.map((consumer) => again(() => subscriber.sweep(consumer))),
]).catch(fail);

async function walked(cell: SenderCell, work: (walk: Walk) => Promise<unknown>): Promise<void> {
  const stop = plan.mode === 'walk' ? 'nowhere' : cell.stop;
  const walk = startWalk(stop, () => say({ said: 'stopped', cell: cell.cell }));
  await work(walk);
  await walk.step('all done');
  say({ said: 'ended', cell: cell.cell, steps: walk.steps });
}

/** Without an end; a pass that fails is made again. */
async function again(pass: () => Promise<unknown>): Promise<never> {
  for (;;) {
    await pass().catch(() => {});
    await pause(betweenPassesMs);
  }
}

async function takePushes(): Promise<string> {
  const push = createPush({ handle: subscriber.handle, deadLetters, log: silentLog });
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { status } = await push({ headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) });
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`;
}
