import { randomUUID } from 'node:crypto';
import { alreadyExists, failedPrecondition, invalidArgument, notFound } from '../grpc.ts';
import type { Journal } from '../journal.ts';
import type { Time } from '../time.ts';
import { createMessageLog, type MessageLog } from './message-log.ts';
import { msOf, type PubsubMessage, type Timestamp, timestampOf } from './messages.ts';
import { checkName, deletedTopic, projectOf } from './names.ts';

/** As it stands on the wire. */
export type SnapshotSettings = {
  readonly name: string;
  readonly topic: string;
  readonly expireTime: Timestamp;
  readonly labels: Readonly<Record<string, string>>;
};

export type Snapshots = {
  /** Of a subscription's messages without an ack, oldest first, and of all that its topic publishes from now on. */
  create(
    asked: { readonly name: string; readonly subscription: string; readonly labels: SnapshotSettings['labels'] },
    topic: string,
    unacked: readonly PubsubMessage[],
  ): SnapshotSettings;
  /** @throws NOT_FOUND */
  get(name: string): SnapshotSettings;
  messages(name: string): readonly PubsubMessage[];
  list(isAsked: (settings: SnapshotSettings) => boolean): SnapshotSettings[];
  update(asked: SnapshotSettings, paths: readonly string[]): SnapshotSettings;
  delete(name: string): void;
  offer(topic: string, message: PubsubMessage): void;
  topicDeleted(topic: string): void;
  clear(): void;
  /** Ends its timers. */
  close(): void;
};

type Snapshot = { readonly settings: SnapshotSettings; readonly log: MessageLog; readonly cancelExpiry: () => void };

const hourMs = 3_600_000;
const longestMs = 7 * 24 * hourMs;

/** Reads back what the journal holds. */
export function createSnapshots(time: Time, journal: Journal): Snapshots {
  const kind = 'pubsub/snapshots';
  const snapshots = new Map<string, Snapshot>();

  const find = (name: string): Snapshot => {
    const snapshot = snapshots.get(checkName('snapshots', name));
    if (!snapshot) throw notFound(`snapshot ${name} does not exist`);
    return snapshot;
  };
  const drop = (name: string) => {
    const { log, cancelExpiry } = find(name);
    cancelExpiry();
    log.dropUntil(Number.POSITIVE_INFINITY);
    snapshots.delete(name);
    journal.delete(kind, name);
  };
  const store = (settings: SnapshotSettings): Snapshot => {
    const { name, expireTime } = settings;
    const before = snapshots.get(name);
    const snapshot = {
      settings,
      log: before?.log ?? createMessageLog(journal, name),
      cancelExpiry: before?.cancelExpiry ?? time.at(msOf(expireTime), () => drop(name)),
    };
    snapshots.set(name, snapshot);
    journal.put(kind, name, settings);
    return snapshot;
  };

  for (const [, settings] of journal.load<SnapshotSettings>(kind)) store(settings);
  return {
    create({ name: asked, subscription, labels }, topic, unacked) {
      const name = asked === '' ? `${projectOf(subscription)}/snapshots/snapshot-${randomUUID()}` : checkName('snapshots', asked);
      if (snapshots.has(name)) throw alreadyExists(`snapshot ${name} exists`);
      const nowMs = time.nowMs();
      const [oldest] = unacked;
      const expiresAtMs = longestMs + (oldest ? msOf(oldest.publishTime) : nowMs);
      if (expiresAtMs - nowMs < hourMs) {
        throw failedPrecondition(
          `snapshot ${name} would expire in ${expiresAtMs - nowMs} ms, by the age of its oldest message; ${hourMs} are the least`,
        );
      }
      const { settings, log } = store({ name, topic, expireTime: timestampOf(expiresAtMs), labels });
      for (const message of unacked) log.add(message);
      return settings;
    },
    get: (name) => find(name).settings,
    messages: (name) => find(name).log.all(),
    list: (isAsked) => [...snapshots.values()].map(({ settings }) => settings).filter(isAsked),
    update(asked, paths) {
      const { settings } = find(asked.name);
      if (paths.length === 0) throw invalidArgument('update_mask is empty');
      const fixed = paths.find((path) => path !== 'labels');
      if (fixed !== undefined) throw invalidArgument(`update_mask names "${fixed}", which cannot be changed`);
      return store({ ...settings, labels: asked.labels }).settings;
    },
    delete: drop,
    offer(topic, message) {
      for (const { settings, log } of snapshots.values()) if (settings.topic === topic) log.add(message);
    },
    topicDeleted(topic) {
      for (const { settings } of snapshots.values()) if (settings.topic === topic) store({ ...settings, topic: deletedTopic });
    },
    clear() {
      for (const name of [...snapshots.keys()]) drop(name);
    },
    close() {
      for (const { cancelExpiry } of snapshots.values()) cancelExpiry();
    },
  };
}
