import { alreadyExists, invalidArgument, notFound, unimplemented } from '../grpc.ts';
import type { Journal } from '../journal.ts';
import type { Time } from '../time.ts';
import { createMessageLog, type MessageLog } from './message-log.ts';
import { checkPublish, type MessageContent, type PubsubMessage, timestampOf } from './messages.ts';
import { checkName, projectOf } from './names.ts';
import type { Serials } from './serials.ts';
import { checkRetention, type Duration, msOfDuration } from './settings.ts';

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
  list(project?: string): TopicSettings[];
  delete(name: string): void;
  /** Gives ids and a publish time and hands each message on. Nothing of a refused request is stored. */
  publish(name: string, messages: readonly MessageContent[]): readonly string[];
  /** A dead letter: it has more attributes than a publisher may give. False where its topic is gone. */
  forward(name: string, message: PubsubMessage): boolean;
  /** How long the topic itself keeps messages, acked or not. */
  retention(name: string): Duration | null;
  retained(name: string): readonly PubsubMessage[];
};

export type TopicsParts = {
  readonly time: Time;
  readonly journal: Journal;
  readonly serials: Serials;
  readonly deliver: (topic: string, message: PubsubMessage) => void;
};

type Topic = { readonly settings: TopicSettings; readonly log: MessageLog };

/** Reads back what the journal holds. */
export function createTopics({ time, journal, serials, deliver }: TopicsParts): Topics {
  const kind = 'pubsub/topics';
  const topics = new Map<string, Topic>();
  let lastPublishMs = 0;

  const find = (name: string): Topic => {
    const topic = topics.get(checkName('topics', name));
    if (!topic) throw notFound(`topic ${name} does not exist`);
    return topic;
  };
  const keepRetained = ({ settings, log }: Topic) => {
    const { messageRetentionDuration: retention } = settings;
    log.dropUntil(retention ? time.nowMs() - msOfDuration(retention) : Number.POSITIVE_INFINITY);
  };
  const store = (settings: TopicSettings, log = createMessageLog(journal, settings.name)) => {
    const topic = { settings, log };
    topics.set(settings.name, topic);
    journal.put(kind, settings.name, settings);
    keepRetained(topic);
    return settings;
  };
  const publish = (topic: Topic, { data, attributes, orderingKey }: MessageContent) => {
    const { settings, log } = topic;
    const messageId = serials.nextMessageId();
    // The machine's clock may be set back; publish times never go back.
    lastPublishMs = Math.max(lastPublishMs, time.nowMs());
    const message = { data, attributes, orderingKey, messageId, publishTime: timestampOf(lastPublishMs) };
    if (settings.messageRetentionDuration) {
      log.add(message);
      keepRetained(topic);
    }
    deliver(settings.name, message);
    return messageId;
  };

  for (const [, settings] of journal.load<TopicSettings>(kind)) store(settings);
  return {
    create(asked) {
      checkName('topics', asked.name);
      refuseUnsupported(asked);
      checkRetention(asked.messageRetentionDuration);
      if (topics.has(asked.name)) throw alreadyExists(`topic ${asked.name} exists`);
      return store({ ...asked, state: 'ACTIVE' });
    },
    get: (name) => find(name).settings,
    update(asked, paths) {
      const { settings, log } = find(asked.name);
      if (paths.length === 0) throw invalidArgument('update_mask is empty');
      const next: Record<string, unknown> = { ...settings };
      for (const path of paths) {
        if (path !== 'labels' && path !== 'message_retention_duration')
          throw invalidArgument(`update_mask names "${path}", which cannot be changed`);
        const field = path === 'labels' ? 'labels' : 'messageRetentionDuration';
        next[field] = asked[field];
      }
      checkRetention(asked.messageRetentionDuration);
      return store(next as TopicSettings, log);
    },
    list: (project) => [...topics.values()].map(({ settings }) => settings).filter(({ name }) => !project || projectOf(name) === project),
    delete(name) {
      find(name).log.dropUntil(Number.POSITIVE_INFINITY);
      topics.delete(name);
      journal.delete(kind, name);
    },
    publish(name, messages) {
      const topic = find(name);
      checkPublish(messages);
      return messages.map((message) => publish(topic, message));
    },
    forward(name, message) {
      const topic = topics.get(name);
      if (topic) publish(topic, message);
      return topic !== undefined;
    },
    retention: (name) => topics.get(name)?.settings.messageRetentionDuration ?? null,
    retained(name) {
      const topic = topics.get(name);
      if (topic) keepRetained(topic);
      return topic?.log.all() ?? [];
    },
  };
}

function refuseUnsupported(asked: TopicSettings): void {
  if (asked.kmsKeyName) throw unimplemented('topics with a KMS key');
  for (const name of ['schemaSettings', 'ingestionDataSourceSettings', 'messageStoragePolicy'])
    if (asked[name]) throw unimplemented(`topics with ${name}`);
  if (Array.isArray(asked.messageTransforms) && asked.messageTransforms.length > 0) throw unimplemented('message transforms');
}
