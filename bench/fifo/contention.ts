import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Measure } from '../measure/rounds.ts';
import { type Addresses, firestoreAt, pubsubAt } from './clients.ts';
import type { Report, Task } from './publisher-process.ts';

export type Contention = {
  /** Messages of one stream a second, by publishers of which each is a process of its own. */
  readonly publish: Readonly<Record<Task['side'], Measure>>;
  close(): Promise<void>;
};

const publishers = 8;
const script = fileURLToPath(new URL('publisher-process.ts', import.meta.url));
/** A publisher of the pattern has one message under way, as more of them make its counter slower still; one of ours has a group. */
const lanes: Readonly<Record<Task['side'], number>> = { ours: 400, published: 1 };

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export async function openContention(addresses: Addresses, durationMs: Readonly<Record<Task['side'], number>>): Promise<Contention> {
  const [db, pubsub] = [firestoreAt(addresses.firestore), pubsubAt(addresses.pubsub)];
  const [topic] = await pubsub.createTopic(`contended-${addresses.firestore.replaceAll(/\W/g, '-')}`);
  const children = Array.from({ length: publishers }, () => {
    const child = fork(script, [JSON.stringify(addresses)]);
    running.add(child);
    child.once('exit', () => running.delete(child));
    return child;
  });
  let rounds = 0;
  const round = (side: Task['side']) => async () => {
    const stream = `${side}-${++rounds}`;
    const task: Task = { side, stream, topic: topic.name, lanes: lanes[side], durationMs: durationMs[side] };
    const startMs = performance.now();
    const published = (await Promise.all(children.map((child) => reported(child, task)))).reduce((sum, count) => sum + count, 0);
    const lastedMs = performance.now() - startMs;
    const counted = await lastNumber[side](stream);
    if (counted !== published) throw new Error(`${side}: the counter is at ${counted} after ${published} messages`);
    return (published * 1_000) / lastedMs;
  };
  const lastNumber = {
    ours: async (stream: string) => Number((await db.collection('ptk-streams').doc(stream).get()).get('next')) - 1,
    published: async (stream: string) => Number((await db.collection('counters').doc(stream).get()).get('last')),
  } satisfies Record<Task['side'], (stream: string) => Promise<number>>;
  return {
    publish: { published: round('published'), ours: round('ours') },
    async close() {
      for (const child of children) child.kill();
      await Promise.all([db.terminate(), pubsub.close()]);
    },
  };
}

function reported(child: ChildProcess, task: Task): Promise<number> {
  return new Promise((resolve, reject) => {
    const died = (code: number | null) => reject(new Error(`a publisher ended with ${code}`));
    child.once('exit', died);
    child.once('message', (report: Report) => {
      child.off('exit', died);
      if ('error' in report) reject(new Error(`a publisher: ${report.error}`));
      else resolve(report.published);
    });
    child.send(task);
  });
}
