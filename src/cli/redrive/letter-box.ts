import type { PubSub } from '@google-cloud/pubsub';
import { textOf } from '../../shared/errors.ts';
import type { OutgoingMessage } from '../../shared/message.ts';

/** A dead letter as it was pulled. */
export type Letter = { readonly ackId: string; readonly messageId: string; readonly message: OutgoingMessage };

/** A subscription of dead letters. */
export interface LetterBox {
  /** Some letters, held for a minute so that nobody else gets them; none where nothing comes for a while. */
  pull(most: number): Promise<readonly Letter[]>;
  ack(letter: Letter): Promise<void>;
  /** Gives back what was pulled, at once. */
  release(letters: readonly Letter[]): Promise<void>;
  /** Full name of the topic that a subscription is of. */
  topicOf(subscription: string): Promise<string>;
}

const holdSeconds = 60;
const deadlineExceeded = 4;

type Pulled = {
  readonly receivedMessages?: readonly {
    readonly ackId: string;
    readonly message: { readonly messageId: string; readonly data: Uint8Array; readonly attributes: object; readonly orderingKey: string };
  }[];
};

/**
 * Letters by synchronous pull of the Pub/Sub client.
 * @param waitMs after which a subscription that sends nothing counts as empty
 */
export function letterBox(pubsub: PubSub, name: string, { waitMs = 5_000 } = {}): LetterBox {
  const subscription = fullName(pubsub, name);
  const call = <Response>(method: string, request: object, gaxOpts = {}): Promise<Response> =>
    new Promise((resolve, reject) => {
      const reqOpts = { subscription, ...request };
      pubsub.request<Response>({ client: 'SubscriberClient', method, reqOpts, gaxOpts }, (error, response) => {
        if (error) reject(error);
        else resolve(response as Response);
      });
    });
  const setDeadline = (letters: readonly Letter[], ackDeadlineSeconds: number) =>
    call('modifyAckDeadline', { ackIds: letters.map(({ ackId }) => ackId), ackDeadlineSeconds });

  return {
    async pull(most) {
      const asked = call<Pulled>('pull', { maxMessages: most }, { timeout: waitMs, retry: null });
      const { receivedMessages = [] } = await asked.catch((error: { code?: unknown }): Pulled => {
        if (error.code === deadlineExceeded) return {};
        throw new Error(`no dead letter can be pulled from ${subscription}: ${textOf(error)}`, { cause: error });
      });
      const letters = receivedMessages.map(({ ackId, message: { messageId, data, attributes, orderingKey } }): Letter => {
        return { ackId, messageId, message: { data, attributes: { ...attributes }, ...(orderingKey && { orderingKey }) } };
      });
      if (letters.length > 0) await setDeadline(letters, holdSeconds);
      return letters;
    },
    async ack({ ackId }) {
      await call('acknowledge', { ackIds: [ackId] });
    },
    async release(letters) {
      if (letters.length > 0) await setDeadline(letters, 0);
    },
    async topicOf(source) {
      const { topic = '' } = await call<{ topic?: string }>('getSubscription', { subscription: source });
      if (!topic.startsWith('projects/')) throw new Error(`the topic of ${source} is deleted`);
      return topic;
    },
  };
}

const fullName = (pubsub: PubSub, name: string): string =>
  name.startsWith('projects/') ? name : `projects/${pubsub.projectId}/subscriptions/${name}`;
