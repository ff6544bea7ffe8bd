import { invalidArgument } from '../grpc.ts';
import type { MessageContent } from './messages.ts';
import { checkProject, deletedTopic, type Mask, type Paging, page } from './names.ts';
import type { PubsubState } from './state.ts';
import type { TopicSettings } from './topics.ts';

export type PublishRequest = { readonly topic: string; readonly messages: readonly MessageContent[] };

/** The methods of google.pubsub.v1.Publisher, named as on the wire. */
export function publisherMethods({ topics, subscriptions, snapshots, find }: PubsubState) {
  const attached = (topic: string) => [...subscriptions.values()].filter(({ settings }) => settings().topic === topic);
  return {
    CreateTopic: (asked: TopicSettings) => topics.create(asked),
    GetTopic: ({ topic }: { topic: string }) => topics.get(topic),
    UpdateTopic: ({ topic, updateMask }: { topic: TopicSettings | null } & Mask) => {
      if (!topic) throw invalidArgument('topic is missing');
      const updated = topics.update(topic, updateMask?.paths ?? []);
      // How long they keep messages may have changed with it.
      for (const { backlog } of attached(topic.name)) backlog.follow();
      return updated;
    },
    ListTopics: ({ project, ...paging }: { project: string } & Paging) => {
      const { items, nextPageToken } = page(topics.list(checkProject(project)), paging);
      return { topics: items, nextPageToken };
    },
    ListTopicSubscriptions: ({ topic, ...paging }: { topic: string } & Paging) => {
      topics.get(topic);
      const names = attached(topic).map(({ settings }) => settings().name);
      const { items, nextPageToken } = page(names, paging);
      return { subscriptions: items, nextPageToken };
    },
    ListTopicSnapshots: ({ topic, ...paging }: { topic: string } & Paging) => {
      topics.get(topic);
      const names = snapshots.list((snapshot) => snapshot.topic === topic).map(({ name }) => name);
      const { items, nextPageToken } = page(names, paging);
      return { snapshots: items, nextPageToken };
    },
    DeleteTopic: ({ topic }: { topic: string }) => {
      topics.delete(topic);
      for (const { settings, change } of attached(topic)) change({ ...settings(), topic: deletedTopic });
      snapshots.topicDeleted(topic);
      return {};
    },
    DetachSubscription: ({ subscription }: { subscription: string }) => {
      const { settings, change } = find(subscription);
      change({ ...settings(), detached: true });
      return {};
    },
    Publish: ({ topic, messages }: PublishRequest) => ({
      messageIds: topics.publish(topic, messages),
    }),
  };
}
