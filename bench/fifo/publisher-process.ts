import { system } from '../../src/shared/adapters/system.ts';
import { errorCodeOf } from '../../src/shared/errors.ts';
import { type Addresses, firestoreAt, payload, pubsubAt } from './clients.ts';
import { patternPublisher } from './published-pattern.ts';
import { openSequencer } from './sequencing.ts';

export type Task = {
  readonly side: 'ours' | 'published';
  readonly stream: string;
  readonly topic: string;
  /** How many messages it has under way at once. */
  readonly lanes: number;
  readonly durationMs: number;
};
export type Report = { readonly published: number } | { readonly error: string };

/** One of several publishers that contend for a stream: `publisher-process.ts ADDRESSES`, then tasks over IPC, each answered by a report. */
const addresses: Addresses = JSON.parse(process.argv[2] ?? '');
const [db, pubsub] = [firestoreAt(addresses.firestore), pubsubAt(addresses.pubsub)];
const sequencer = openSequencer(db, pubsub);

const publishers = {
  ours: ({ topic, stream }: Task) => {
    const publish = async (key: string): Promise<unknown> =>
      sequencer.publish({ topic, stream, data: payload, key }).catch((error: unknown) => {
        // As a caller does: the same key, and so the same number if it has one.
        if (['STREAM_CONTENDED', 'STORE_UNAVAILABLE'].includes(errorCodeOf(error) ?? '')) return publish(key);
        throw error;
      });
    return () => publish(system.randomId());
  },
  published: ({ topic, stream }: Task) => {
    const publish = patternPublisher(db, pubsub.topic(topic));
    return () => publish(stream, payload);
  },
} satisfies Record<Task['side'], (task: Task) => () => Promise<unknown>>;

async function work(task: Task): Promise<Report> {
  const publish = publishers[task.side](task);
  const untilMs = performance.now() + task.durationMs;
  let published = 0;
  const lane = async () => {
    while (performance.now() < untilMs) {
      await publish();
      published += 1;
    }
  };
  await Promise.all(Array.from({ length: task.lanes }, lane));
  await sequencer.flush();
  return { published };
}

process.on('message', (task: Task) => {
  work(task).then(
    (report) => process.send?.(report),
    (error: unknown) => process.send?.({ error: String(error) } satisfies Report),
  );
});
process.once('disconnect', () => process.exit());
