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
  const { DELAY_LEDGER, DELAY_MODE } = base.settings;
  const parts = await connectDelay(base.settings, environment);
  const handle = createDelay({
    ...base,
    ...parts,
    ledgerAll: DELAY_LEDGER === 'all',
    handlerless: DELAY_MODE === 'handler-less',
    topicOf: topicsOf(base.pubsub, base.log),
    system,
  });
  return pushFunction(createPush({ ...base, handle }));
}

const permissionDenied = 7;

/** The topic of a subscription, asked once for each; one that may not be read has none. */
function topicsOf(pubsub: PubSub, log: Log): (subscription: string) => Promise<string | undefined> {
  const known = new Map<string, Promise<string | undefined>>();
  const read = async (subscription: string) => {
    try {
      const [{ topic }] = await pubsub.subscription(subscription).getMetadata();
      return topic ?? undefined;
    } catch (error) {
      const reason = textOf(error);
      log.warn({ subscription, reason }, 'subscription not read, so whether a message is already where it is to go is not known');
      if ((error as { code?: unknown }).code !== permissionDenied) known.delete(subscription);
      return undefined;
    }
  };
  return async (subscription) => {
    if (subscription === '') return undefined;
    const topic = known.get(subscription) ?? read(subscription);
    known.set(subscription, topic);
    return topic;
  };
}
