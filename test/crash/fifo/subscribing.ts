import { setTimeout as pause } from 'node:timers/promises';
import type { Firestore } from '@google-cloud/firestore';
import { firestoreFifoStore } from '../../../src/shared/adapters/firestore-fifo.ts';
import { system } from '../../../src/shared/adapters/system.ts';
import { createFifo, type FifoHandler } from '../../../src/shared/fifo/fifo.ts';
import { attribute, type Message } from '../../../src/shared/message.ts';
import type { DeadLetters, VerdictHandler } from '../../../src/shared/ports.ts';
import { silentLog } from '../../../src/testing/doubles.ts';
import { createQueue, type Queue } from '../queue.ts';
import { startWalk, type Walk } from '../steps.ts';
import { unprotectedFifo } from './controls.ts';
import { consumerOf, type Line, type Post, partOf, type Task, taskOf, type WorkerPlan } from './plan.ts';

export type SubscribingParts = {
  readonly db: Firestore;
  readonly deadLetters: DeadLetters;
  readonly plan: WorkerPlan;
  readonly say: (line: Line) => void;
};

export type Subscriber = { readonly handle: VerdictHandler; sweep(consumer: string): Promise<void> };

/** One handler per cell where it is to stop, with a walk of its own; else one for all cells with the same protections. */
type Consumer = { readonly handle: FifoHandler; readonly queue: Queue; readonly walk: Walk | undefined; readonly acked: Set<number> };

/** A call may wait until its process is killed; poison is to be found soon, though a kill counts as an attempt. */
const options = { storeTimeoutMs: 60_000, sweepAfterMs: 1_000, maxAttempts: 3, gapTimeoutMs: 3_600_000 };

export function createSubscriber({ db, deadLetters, plan, say }: SubscribingParts): Subscriber {
  const consumers = new Map<string, Consumer>();
  const ran = async (message: Message, walk: Walk | undefined) => {
    const { cell } = taskOf(message);
    const { delayMs, isPoison } = partOf(message);
    await walk?.step('effect sent');
    if (isPoison) throw new Error('poison');
    const { [attribute.sequence]: seq, [attribute.key]: key = '' } = message.attributes;
    const post = (phase: Post['phase']) => postTo(plan.sinkUrl, { phase, worker: plan.name, cell, seq: Number(seq), key });
    await post('begin');
    await pause(delayMs);
    await post('end');
    await walk?.step('effect done');
  };
  const create = (task: Task): Consumer => {
    const { cell, stop, without } = task;
    const stopped = () => say({ said: 'stopped', cell });
    const walk = plan.mode === 'work' ? undefined : startWalk(plan.mode === 'walk' ? 'nowhere' : stop, stopped);
    const store = firestoreFifoStore(db, system.clock);
    const fifo = createFifo({
      consumer: consumerOf(task),
      store: unprotectedFifo(walk ? walk.through(store) : store, without),
      system,
      log: silentLog,
      deadLetters: walk ? walk.through(deadLetters) : deadLetters,
      early: without === 'parking' ? 'nack' : 'park',
      onPoison: 'deadLetter',
      options: { ...options, leaseMs: plan.leaseMs },
    });
    return { handle: fifo((message) => ran(message, walk)), queue: createQueue(), walk, acked: new Set() };
  };
  const consumerFor = (task: Task): Consumer => {
    const name = plan.mode === 'work' ? consumerOf(task) : task.cell;
    const consumer = consumers.get(name) ?? create(task);
    consumers.set(name, consumer);
    return consumer;
  };

  const handle: VerdictHandler = async (message, context) => {
    const task = taskOf(message);
    const { index } = partOf(message);
    const { handle, queue, walk, acked } = consumerFor(task);
    const seq = Number(message.attributes[attribute.sequence]);
    const delivered = async () => {
      await walk?.step('received');
      const verdict = await handle(message, context);
      say({ said: 'verdict', cell: task.cell, seq, kind: verdict.kind, reason: verdict.reason });
      await walk?.step('verdict known');
      if (verdict.kind === 'ack') acked.add(index);
      if (walk && acked.size === task.count) say({ said: 'ended', cell: task.cell, steps: walk.steps });
      return verdict;
    };
    return walk && !task.isTogether ? queue(index, delivered) : delivered();
  };
  return {
    handle,
    async sweep(consumer) {
      await consumerFor({ cell: '', stop: '', consumer, without: 'nothing', count: 0, isTogether: false }).handle.sweep();
    },
  };
}

async function postTo(url: string, post: Post): Promise<void> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(post) });
  await response.body?.cancel();
}
