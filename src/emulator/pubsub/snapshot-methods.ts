import { failedPrecondition, invalidArgument } from '../grpc.ts';
import { msOf, type Timestamp } from './messages.ts';
import { checkProject, type Mask, type Paging, page, projectOf } from './names.ts';
import type { SnapshotSettings } from './snapshots.ts';
import type { PubsubState } from './state.ts';
import type { Subscription } from './subscription.ts';

/** At most one of `time` and `snapshot`; the other is absent. */
type SeekRequest = { readonly subscription: string; readonly time?: Timestamp | null; readonly snapshot?: string };
type CreateSnapshotRequest = Pick<SnapshotSettings, 'name' | 'labels'> & { readonly subscription: string };

/** The methods of google.pubsub.v1.Subscriber that are about snapshots and replays, named as on the wire. */
export function snapshotMethods({ topics, snapshots, find }: PubsubState) {
  const seekToTime = ({ settings, seek }: Subscription, time: Timestamp) => {
    const fromMs = msOf(time);
    seek(({ publishTime }) => msOf(publishTime) >= fromMs, topics.retained(settings().topic));
  };
  const seekToSnapshot = ({ settings, seek }: Subscription, name: string) => {
    const snapshot = snapshots.get(name);
    const { topic } = settings();
    if (snapshot.topic !== topic) throw failedPrecondition(`snapshot ${name} is of topic ${snapshot.topic}, the subscription of ${topic}`);
    const messages = snapshots.messages(name);
    const unacked = new Set(messages.map(({ messageId }) => messageId));
    seek(({ messageId }) => unacked.has(messageId), messages);
  };
  return {
    CreateSnapshot: (asked: CreateSnapshotRequest) => {
      const { settings, backlog, checkAttached } = find(asked.subscription);
      checkAttached();
      return snapshots.create(asked, settings().topic, backlog.unacked());
    },
    GetSnapshot: ({ snapshot }: { snapshot: string }) => snapshots.get(snapshot),
    ListSnapshots: ({ project, ...paging }: { project: string } & Paging) => {
      checkProject(project);
      const { items, nextPageToken } = page(
        snapshots.list(({ name }) => projectOf(name) === project),
        paging,
      );
      return { snapshots: items, nextPageToken };
    },
    UpdateSnapshot: ({ snapshot, updateMask }: { snapshot: SnapshotSettings | null } & Mask) => {
      if (!snapshot) throw invalidArgument('snapshot is missing');
      return snapshots.update(snapshot, updateMask?.paths ?? []);
    },
    DeleteSnapshot: ({ snapshot }: { snapshot: string }) => {
      snapshots.delete(snapshot);
      return {};
    },
    Seek: ({ subscription, time, snapshot }: SeekRequest) => {
      const found = find(subscription);
      found.checkAttached();
      if (time) seekToTime(found, time);
      else if (snapshot) seekToSnapshot(found, snapshot);
      else throw invalidArgument('a seek needs a time or a snapshot');
      return {};
    },
  };
}
