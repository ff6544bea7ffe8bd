import { PubSub } from '@google-cloud/pubsub';
import { attribute } from '../../src/shared/message.ts';
import type { Stage } from './hooks/stage.ts';

export type TrafficEnv = {
  readonly projectId: string;
  /** Outputs of the root module. */
  readonly outputs: Readonly<Record<string, unknown>>;
  readonly stage: Stage;
};

const messages = 5;
const delayMs = 300;
const timeoutMs = 60_000;

/**
 * Lets messages through what was applied; each is published twice, and every other one is to come later.
 *
 * @returns how many arrived in the topic behind the dedup function, each of them once
 * @throws Error that says which did not arrive, or more than once
 */
export async function traffic({ projectId, outputs, stage }: TrafficEnv): Promise<number> {
  const { final = '', delayed = '', dedup_out: out = '' } = outputs.topics as Readonly<Record<string, string>>;
  const pubsub = new PubSub({ projectId, apiEndpoint: stage.emulator.pubsub.address, emulatorMode: true });
  const [subscription] = await pubsub.topic(out).createSubscription('traffic');
  const arrived = new Map<string, number>();
  subscription.on('message', (message) => {
    const key = String(message.attributes[attribute.key]);
    arrived.set(key, (arrived.get(key) ?? 0) + 1);
    message.ack();
  });
  try {
    const published = Array.from({ length: messages }, (_, index) => `message-${index}`);
    for (const [index, key] of published.entries()) {
      const later = delayed !== '' && index % 2 === 1;
      const message = {
        data: Buffer.from(key),
        attributes: { [attribute.key]: key, ...(later && { [attribute.delayMs]: String(delayMs) }) },
      };
      for (let copy = 0; copy < 2; copy++) await pubsub.topic(later ? delayed : final).publishMessage(message);
    }
    const untilMs = performance.now() + timeoutMs;
    // Nothing more may come once every copy is acked.
    while (published.some((key) => !arrived.has(key)) || stage.emulator.pubsub.backlog() > 0) {
      if (performance.now() > untilMs)
        throw new Error(`of ${messages} messages these arrived: ${[...arrived.keys()].join(', ') || 'none'}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const repeated = [...arrived].filter(([, times]) => times > 1);
    if (repeated.length > 0) throw new Error(`more than once arrived ${repeated.map(([key]) => key).join(', ')}`);
    return arrived.size;
  } finally {
    await subscription.close();
    await subscription.delete();
    await pubsub.close();
  }
}
