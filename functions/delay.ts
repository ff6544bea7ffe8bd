import type { PubSub } from '@google-cloud/pubsub';
import { system } from '../src/shared/adapters/system.ts';
import { createDelay } from '../src/shared/delay/delay.ts';
import { textOf } from '../src/shared/errors.ts';
import type { Log } from '../src/shared/ports.ts';
import { createPush } from '../src/shared/transports/push.ts';
import { connectBase } from '../src/shell/clients.ts';
import { connectDelay } from '../src/shell/delay-parts.ts';
import type { Environment } from '../src/shell/settings.ts';
import { type HttpFunction, pushFunction } from './http.ts';

/** Turns messages with a due time into tasks. */
export async function startDelay(environment: Environment): Promise<HttpFunction> {
  const base = connectBase('delay', environment);
  const { FINAL_TOPIC, DELAY_LEDGER, DELAY_MODE } = base.settings;
  const parts = await connectDelay(base.settings, environment);
  const handle = createDelay({
    ...base,
    ...parts,
    finalTopic: FINAL_TOPIC,
    ledgerAll: DELAY_LEDGER === 'all',
    handlerless: DELAY_MODE === 'handler-less',
    topicOf: topicsOf(base.pubsub, base.log),
    system,
  });
  return pushFunction(createPush({ ...base, handle }));
}

/** The topic of a subscription, asked once for each; a subscription that may not be read has none. */
function topicsOf(pubsub: PubSub, log: Log): (subscription: string) => Promise<string | undefined> {
  const known = new Map<string, Promise<string | undefined>>();
  const read = async (subscription: string) => {
    try {
      const [{ topic }] = await pubsub.subscription(subscription).getMetadata();
      return topic ?? undefined;
    } catch (error) {
      log.warn(
        { subscription, reason: textOf(error) },
        'subscription not read, so whether a message is already where it is to go is not known',
      );
      return undefined;
    }
  };
  return (subscription) => {
    const topic = known.get(subscription) ?? read(subscription);
    known.set(subscription, topic);
    return topic;
  };
}
