import { cloudTasksClient, cloudTasksScheduler, type ReleaseTarget } from '../shared/adapters/cloud-tasks.ts';
import { firestoreDelayLedger } from '../shared/adapters/firestore-delays.ts';
import { firestoreLatenessStore } from '../shared/adapters/firestore-lateness.ts';
import { firestorePayloadStore } from '../shared/adapters/firestore-payloads.ts';
import { system } from '../shared/adapters/system.ts';
import { delayOptions } from '../shared/delay/options.ts';
import { readOptions } from '../shared/options.ts';
import { connectFirestore } from './clients.ts';
import type { Environment, Settings } from './settings.ts';

/** What everything that delays works with: queues, ledger, payloads, lateness, and what closes their clients. */
export async function connectDelay(settings: Settings, environment: Environment) {
  const { GOOGLE_CLOUD_PROJECT, TASK_QUEUES, RELEASE_SERVICE, RELEASE_URL, RELEASE_ACCOUNT, FINAL_TOPIC, TARGET_TOPICS } = settings;
  const full = (topic: string) => (topic.startsWith('projects/') ? topic : `projects/${GOOGLE_CLOUD_PROJECT}/topics/${topic}`);
  const options = readOptions(delayOptions, {}, environment);
  const client = cloudTasksClient(GOOGLE_CLOUD_PROJECT, environment.CLOUD_TASKS_EMULATOR_HOST);
  const release: ReleaseTarget = RELEASE_URL ? { url: RELEASE_URL, account: RELEASE_ACCOUNT } : { service: RELEASE_SERVICE };
  const pubsubUrl = environment.PUBSUB_EMULATOR_HOST ? `http://${environment.PUBSUB_EMULATOR_HOST}` : 'https://pubsub.googleapis.com';
  const publishing = RELEASE_ACCOUNT ? { publishing: { url: pubsubUrl, account: RELEASE_ACCOUNT } } : {};
  const db = await connectFirestore(settings);
  return {
    scheduler: cloudTasksScheduler({ client, release, ...publishing, system }),
    queues: TASK_QUEUES.split(','),
    finalTopic: full(FINAL_TOPIC),
    targets: TARGET_TOPICS === '' ? [] : TARGET_TOPICS.split(',').map(full),
    ledger: firestoreDelayLedger(db, system.clock, settings.COLLECTION_PREFIX),
    payloads: firestorePayloadStore(db, system.clock, settings.COLLECTION_PREFIX),
    lateness: firestoreLatenessStore(db, settings.COLLECTION_PREFIX),
    options,
    db,
    warmUp: () => client.initialize(),
    close: () => Promise.all([client.close(), db.terminate()]),
  };
}
