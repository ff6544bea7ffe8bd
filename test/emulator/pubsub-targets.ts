import type { PubSub, Topic } from '@google-cloud/pubsub';
import grpc from '@grpc/grpc-js';
import { createFaults, type Faults } from '../../src/emulator/faults.ts';
import { noJournal } from '../../src/emulator/journal.ts';
import { listen } from '../../src/emulator/listen.ts';
import { createPubsubEmulator, type PubsubEmulator, type PubsubOptions } from '../../src/emulator/pubsub/service.ts';
import { realTime, type Time } from '../../src/emulator/time.ts';
import { googleTarget, pubsubClient, type Target } from '../support/targets.ts';
import { type RawPubsub, rawPubsub } from './pubsub-raw.ts';

export type EmbeddedPubsub<T extends Time> = PubsubEmulator & {
  readonly target: Target;
  readonly time: T;
  readonly faults: Faults;
  stop(): Promise<void>;
};

export type EmbeddedOptions = Partial<Omit<PubsubOptions, 'time' | 'faults'>> & { readonly port?: number };

export async function embeddedPubsub<T extends Time = Time>(
  time: T = realTime() as Time as T,
  { port = 0, ...options }: EmbeddedOptions = {},
): Promise<EmbeddedPubsub<T>> {
  const faults = createFaults();
  const emulator = createPubsubEmulator({ time, faults, journal: noJournal, ...options });
  const server = await listen(emulator.register, port, emulator.rest);
  return {
    ...emulator,
    target: { name: 'embedded', address: server.address },
    time,
    faults,
    async stop() {
      emulator.close();
      time.close();
      await server.close();
    },
  };
}

/** The embedded emulator, and Google's where it runs. */
export function pubsubTargets(embedded: { readonly target: Target }): Target[] {
  const google = googleTarget('pubsub');
  return google ? [embedded.target, google] : [embedded.target];
}

let projects = 0;
const nextProject = () => `ptk-${process.pid}-${projects++}`;

/** A test through the real client, with a project of its own. */
export function withPubsub(target: Target, run: (pubsub: PubSub) => Promise<void>): () => Promise<void> {
  return async () => {
    const pubsub = pubsubClient(target, nextProject());
    try {
      await run(pubsub);
    } finally {
      await pubsub.close();
    }
  };
}

/** A test below the client: every field of a request and an answer in the open, nothing tried again. */
export function withRawPubsub(target: Target, run: (raw: RawPubsub) => Promise<void>): () => Promise<void> {
  return async () => {
    const raw = rawPubsub(target, nextProject());
    try {
      await run(raw);
    } finally {
      raw.close();
    }
  };
}

/** The gRPC code that a call ends with. */
export function codeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'OK',
    (error: { code?: unknown }) => (typeof error.code === 'number' ? grpc.status[error.code] : error),
  );
}

/** A subscriber that acks, and what it got and complained of. */
export async function acking(topic: Topic) {
  const [subscription] = await topic.createSubscription('worker');
  const [texts, errors]: [string[], unknown[]] = [[], []];
  subscription.on('error', (error) => errors.push(error));
  subscription.on('message', (message) => {
    texts.push(message.data.toString());
    message.ack();
  });
  return { texts, errors };
}
