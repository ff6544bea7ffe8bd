import { alreadyExists, invalidArgument, notFound, unimplemented } from '../grpc.ts';
import type { Time } from '../time.ts';
import { checkPublish, type PubsubMessage, timestampOf } from './messages.ts';
import { checkName, projectOf } from './names.ts';

/** A topic as it stands on the wire, as far as the emulator keeps it. */
export type TopicSettings = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly messageRetentionDuration: unknown;
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
  /** A dead letter: it has more attributes than a publisher may give, and its topic may be gone. */
  forward(name: string, message: PubsubMessage): void;
};

/** Ids are unique over all topics; the service promises it for one. */
const firstMessageId = 10_000_000_000;

export function createTopics(time: Time, deliver: (topic: string, message: PubsubMessage) => void): Topics {
  const topics = new Map<string, TopicSettings>();
  let messageSerial = firstMessageId;
  const get = (name: string) => {
    const topic = topics.get(checkName('topics', name));
    if (!topic) throw notFound(`topic ${name} does not exist`);
    return topic;
  };
  const store = (name: string, { data, attributes, orderingKey }: PubsubMessage) => {
    const messageId = String(++messageSerial);
    deliver(name, { data, attributes, orderingKey, messageId, publishTime: timestampOf(time.nowMs()) });
    return messageId;
  };
  return {
    create(asked) {
      checkName('topics', asked.name);
      refuseUnsupported(asked);
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
      if (topics.has(name)) store(name, message);
    },
  };
}

function refuseUnsupported(asked: TopicSettings): void {
  if (asked.kmsKeyName) throw unimplemented('topics with a KMS key');
  for (const name of ['schemaSettings', 'ingestionDataSourceSettings', 'messageStoragePolicy'])
    if (asked[name]) throw unimplemented(`topics with ${name}`);
  if (Array.isArray(asked.messageTransforms) && asked.messageTransforms.length > 0) throw unimplemented('message transforms');
}
