import type { Item } from './items.ts';
import { msOf } from './messages.ts';

/** What a dead letter says of where it came from (`docs/facts.md` A.5). */
export function deadLetterAttributes({ message, failures }: Item, subscription: string): Record<string, string> {
  const [, project = '', , id = ''] = subscription.split('/');
  return {
    ...message.attributes,
    CloudPubSubDeadLetterSourceDeliveryCount: String(failures),
    CloudPubSubDeadLetterSourceSubscription: id,
    CloudPubSubDeadLetterSourceSubscriptionProject: project,
    CloudPubSubDeadLetterSourceTopicPublishTime: new Date(msOf(message.publishTime)).toISOString(),
  };
}
