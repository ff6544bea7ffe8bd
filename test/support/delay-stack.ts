import { createServer, type RequestListener } from 'node:http';
import { PubSub, type v1 } from '@google-cloud/pubsub';
import express, { type Express } from 'express';
import { afterAll, expect, onTestFinished, vi } from 'vitest';
import { createApp } from '../../appengine/app.ts';
import { pushFunction } from '../../functions/http.ts';
import { type EmulatorOptions, startEmulator } from '../../src/emulator/server.ts';
import { manualTime } from '../../src/emulator/time.ts';
import { calendar } from '../../src/shared/adapters/calendar.ts';
import { cloudTasksClient, cloudTasksScheduler } from '../../src/shared/adapters/cloud-tasks.ts';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { firestoreDelayLedger, firestorePayloadStore } from '../../src/shared/adapters/firestore-delays.ts';
import { pubsubPublisher } from '../../src/shared/adapters/pubsub.ts';
import { system as real } from '../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDelay, type DelayParts } from '../../src/shared/delay/delay.ts';
import { createDelays } from '../../src/shared/delay/delays.ts';
import { createRelease, type ReleaseParts } from '../../src/shared/delay/release.ts';
import { createRepair } from '../../src/shared/delay/repair.ts';
import type { Clock } from '../../src/shared/ports.ts';
import { deadLetterTopic } from '../../src/shared/transports/dead-letters.ts';
import { createPush } from '../../src/shared/transports/push.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { keptMeter } from './dedup-workers.ts';
import { firestoreClient } from './targets.ts';

const projectId = 'ptk-delays';
const location = `projects/${projectId}/locations/local`;
export const second = 1_000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** Subscriptions that nobody uses end after 31 days otherwise. */
const unending = { expirationPolicy: {} };

type Queue = NonNullable<Parameters<ReturnType<typeof cloudTasksClient>['createQueue']>[0]>['queue'];
export type StackParts = {
  /** How far the clock of function and release is ahead of the services'. */
  readonly skewMs?: number;
  readonly delay?: Partial<DelayParts>;
  readonly release?: Partial<ReleaseParts>;
  readonly queue?: Queue;
  /** What is due goes back to the topic that it came from. */
  readonly toSource?: boolean;
  /** In front of the release. */
  readonly parser?: express.RequestHandler;
};
export type Came = {
  readonly messageId: string;
  readonly data: Buffer;
  readonly attributes: Record<string, string>;
  readonly orderingKey: string;
  /** When it was published, by the service's clock. */
  readonly atMs: number;
};
export type DelayStack = Awaited<ReturnType<Awaited<ReturnType<typeof delayStacks>>['open']>>;

/** A clock that is wrong, and goes as fast as the right one. */
const skewed = (clock: Clock, skewMs: number): Clock => ({
  nowMs: () => clock.nowMs() + skewMs,
  monotonicMs: clock.monotonicMs,
  after: clock.after,
});

async function served(listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The delay layer on one emulator whose time a test moves: its two shells behind HTTP, and real clients between them. */
export async function delayStacks(options: EmulatorOptions = {}) {
  const time = manualTime();
  const apps = new Map<string, Express>();
  const front = await served((request, response) => {
    const app = apps.get(String(request.headers['x-appengine-queuename']));
    if (app) app(request, response);
    else response.writeHead(404).end();
  });
  const emulator = await startEmulator({ ...options, time, appEngineUrl: front.url });
  const pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
  const db = firestoreClient(emulator.firestore.address, projectId);
  const tasks = cloudTasksClient(projectId, emulator.env.CLOUD_TASKS_EMULATOR_HOST);
  const publisher = pubsubPublisher(pubsub);
  const subscriber = (await pubsub.getClientAsync_({ client: 'SubscriberClient' })) as unknown as v1.SubscriberClient;
  const inboxes: (() => Promise<readonly Came[]>)[] = [];
  let opened = 0;
  afterAll(async () => {
    await Promise.all([pubsub.close(), db.terminate(), tasks.close()]);
    await emulator.close();
    await front.close();
  });

  /** Everything that comes to a topic from now on, in its order. */
  const inbox = async (topic: string) => {
    await pubsub.topic(topic).get({ autoCreate: true });
    const subscription = `projects/${projectId}/subscriptions/${topic}-test`;
    await pubsub.topic(topic).createSubscription(`${topic}-test`, unending);
    const came: Came[] = [];
    const read = async (): Promise<readonly Came[]> => {
      while (emulator.pubsub.backlog(subscription) > 0) {
        const [{ receivedMessages }] = await subscriber.pull({ subscription, maxMessages: 1_000 });
        const ackIds = (receivedMessages ?? []).map(({ ackId }) => ackId ?? '');
        await subscriber.acknowledge({ subscription, ackIds });
        for (const { message } of receivedMessages ?? []) {
          const { seconds, nanos } = message?.publishTime ?? {};
          came.push({
            messageId: message?.messageId ?? '',
            data: Buffer.from(message?.data ?? ''),
            attributes: { ...message?.attributes },
            orderingKey: message?.orderingKey ?? '',
            atMs: Number(seconds) * 1_000 + Number(nanos) / 1_000_000,
          });
        }
      }
      return came;
    };
    inboxes.push(read);
    return read;
  };

  return { time, emulator, pubsub, db, tasks, publisher, inbox, open };

  async function open({ skewMs = 0, toSource = false, parser, queue: settings, ...given }: StackParts = {}) {
    const run = ++opened;
    const prefix = `run${run}-`;
    const [source, dead] = [`${prefix}source`, `${prefix}dead`];
    const final = toSource ? source : `${prefix}final`;
    const finalTopic = `projects/${projectId}/topics/${final}`;
    const queueId = `${prefix}queue`;
    const queue = `${location}/queues/${queueId}`;
    const system = { ...real, clock: skewed(time, skewMs) };
    const meter = keptMeter();
    const ledger = firestoreDelayLedger(db, system.clock, prefix);
    const payloads = firestorePayloadStore(db, system.clock, prefix);
    const deadLetters = deadLetterTopic(publisher, dead);
    const scheduler = cloudTasksScheduler({ client: tasks, release: {}, system });
    const parts = { publisher, scheduler, queues: [queue], finalTopic, ledger, payloads, calendar, system, log: silentLog };
    const topicOf = async (name: string) => (await pubsub.subscription(name).getMetadata())[0].topic ?? undefined;

    let underWay = 0;
    const push = createPush({ handle: createDelay({ ...parts, topicOf, ...given.delay }), deadLetters, log: silentLog });
    const handle = pushFunction(push);
    const web = express().use(express.json({ limit: '20mb' }));
    web.post('/', async (request, response) => {
      underWay += 1;
      await handle(request, response).finally(() => {
        underWay -= 1;
      });
    });
    const delayFunction = await served(web);

    const store = firestoreRecordStore<DedupRecord>(db, system.clock, `${prefix}ptk-dedup`);
    const release = createRelease({ ...parts, store, deadLetters, meter, ...given.release });
    const app = createApp({ release, queues: [queue], log: silentLog, meter });
    apps.set(queueId, parser ? express().use(parser, app) : app);

    const [finals, letters] = [await inbox(final), await inbox(dead)];
    if (!toSource) await pubsub.createTopic(source);
    const pushConfig = { pushEndpoint: delayFunction.url };
    await pubsub.topic(source).createSubscription(source, { ...unending, pushConfig, ackDeadlineSeconds: 600 });
    await tasks.createQueue({ parent: location, queue: { ...settings, name: queue } });
    onTestFinished(async () => {
      apps.delete(queueId);
      await pubsub.subscription(source).delete();
      await delayFunction.close();
    });

    const pending = () => emulator.tasks.pending().filter(({ name }) => name.startsWith(`${queue}/`));
    /** Resolves once nothing that is due now is under way any more. */
    const quiet = () =>
      vi.waitFor(
        async () => {
          await time.advance(0);
          expect({ dispatching: emulator.tasks.dispatching(), underWay }).toEqual({ dispatching: 0, underWay: 0 });
          expect(emulator.pubsub.backlog(`projects/${projectId}/subscriptions/${source}`)).toBe(0);
        },
        { timeout: 10_000, interval: 2 },
      );
    return {
      ...{ source, finalTopic, dead, queue, queueId, system, meter, ledger, payloads, scheduler, app, pending, quiet, prefix },
      subscription: `projects/${projectId}/subscriptions/${source}`,
      functionUrl: delayFunction.url,
      delays: createDelays(given.delay?.targets ? { ...parts, targets: given.delay.targets } : parts),
      repair: createRepair(parts),
      underWay: () => underWay,
      /** What has come to the final topic so far. */
      came: finals,
      letters,
      publish: (attributes: Record<string, string>, data: string | Buffer = 'x', orderingKey?: string) =>
        pubsub
          .topic(source, { messageOrdering: orderingKey !== undefined })
          .publishMessage({ data: Buffer.from(data), attributes, ...(orderingKey !== undefined && { orderingKey }) }),
      /** Lets time pass; what becomes due on the way has had its effect before time goes on. */
      async pass(ms: number): Promise<void> {
        const untilMs = time.nowMs() + ms;
        for (;;) {
          await quiet();
          // What nobody reads is kept for 7 days only.
          await Promise.all(inboxes.map((read) => read()));
          const next = pending().find(({ dueAtMs }) => dueAtMs > time.nowMs());
          if (!next || next.dueAtMs > untilMs) break;
          await time.advance(next.dueAtMs - time.nowMs());
        }
        await time.advance(untilMs - time.nowMs());
        await quiet();
      },
      /** Waits for what takes real time; retries of ours, which wait by the clock, go on meanwhile. */
      until: (check: () => unknown, { tickMs = 0, timeout = 10_000 } = {}) =>
        vi.waitFor(
          async () => {
            await time.advance(tickMs);
            await check();
          },
          { timeout, interval: 2 },
        ),
    };
  }
}
