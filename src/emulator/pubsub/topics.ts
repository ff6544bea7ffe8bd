import { alreadyExists, invalidArgument, notFound, unimplemented } from '../grpc.ts';
import type { Time } from '../time.ts';
import { checkPublish, type PubsubMessage, timestampOf } from './messages.ts';
import { checkName, projectOf } from './names.ts';
import { checkRetention, type Duration } from './settings.ts';

/** A topic as it stands on the wire, as far as the emulator keeps it. */
export type TopicSettings = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly messageRetentionDuration: Duration | null;
  readonly kmsKeyName: string;
} & Readonly<Record<string, unknown>>;

export type Topics = {
  create(asked: TopicSettings): TopicSettings;
  /** @throws NOT_FOUND */
  get(name: string): TopicSettings;
  update(asked: TopicSettings, paths: readonly string[]): TopicSettings;
  list(project: string): TopicSettings[];
  delete(name: string): void;
  /** Gives ids and a publish time and hands each message on. Nothing of a refused request is stored. */
  publish(name: string, messages: readonly PubsubMessage[]): readonly string[];
  /** A dead letter: it has more attributes than a publisher may give. False where its topic is gone. */
  forward(name: string, message: PubsubMessage): boolean;
};

/** Ids are unique over all topics; the service promises it for one. */
const firstMessageId = 10_000_000_000;

export function createTopics(time: Time, deliver: (topic: string, message: PubsubMessage) => void): Topics {
  const topics = new Map<string, TopicSettings>();
  let messageSerial = firstMessageId;
  let lastPublishMs = 0;
  const get = (name: string) => {
    const topic = topics.get(checkName('topics', name));
    if (!topic) throw notFound(`topic ${name} does not exist`);
    return topic;
  };
  const store = (name: string, { data, attributes, orderingKey }: PubsubMessage) => {
    const messageId = String(++messageSerial);
    // The machine's clock may be set back; publish times never go back.
    lastPublishMs = Math.max(lastPublishMs, time.nowMs());
    deliver(name, { data, attributes, orderingKey, messageId, publishTime: timestampOf(lastPublishMs) });
    return messageId;
  };
  return {
    create(asked) {
      checkName('topics', asked.name);
      refuseUnsupported(asked);
      checkRetention(asked.messageRetentionDuration);
      if (topics.has(asked.name)) throw alreadyExists(`topic ${asked.name} exists`);
      topics.set(asked.name, { ...asked, state: 'ACTIVE' });
      return get(asked.name);
    },
    get,
    update(asked, paths) {
      const current = get(asked.name);
      if (paths.length === 0) throw invalidArgument('update_mask is empty');
      const next: Record<string, unknown> = { ...current };
      for (const path of paths) {
        if (path !== 'labels' && path !== 'message_retention_duration')
          throw invalidArgument(`update_mask names "${path}", which cannot be changed`);
        const field = path === 'labels' ? 'labels' : 'messageRetentionDuration';
        next[field] = asked[field];
      }
      checkRetention(asked.messageRetentionDuration);
      topics.set(asked.name, next as TopicSettings);
      return get(asked.name);
    },
    list: (project) => [...topics.values()].filter(({ name }) => projectOf(name) === project),
    delete(name) {
      get(name);
      topics.delete(name);
    },
    publish(name, messages) {
      get(name);
      checkPublish(messages);
      return messages.map((message) => store(name, message));
    },
    forward(name, message) {
      if (!topics.has(name)) return false;
      store(name, message);
      return true;
    },
  };
}

function refuseUnsupported(asked: TopicSettings): void {
  if (asked.kmsKeyName) throw unimplemented('topics with a KMS key');
  for (const name of ['schemaSettings', 'ingestionDataSourceSettings', 'messageStoragePolicy'])
    if (asked[name]) throw unimplemented(`topics with ${name}`);
  if (Array.isArray(asked.messageTransforms) && asked.messageTransforms.length > 0) throw unimplemented('message transforms');
}
