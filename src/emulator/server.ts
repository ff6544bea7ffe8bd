import { createFaults, type FaultPlan, type Faults } from './faults.ts';
import { createFirestoreEmulator, type FirestoreEmulator } from './firestore/service.ts';
import { listen } from './grpc.ts';
import { createPubsubEmulator, type PubsubEmulator } from './pubsub/service.ts';
import { createAppEngineFront } from './tasks/app-engine-front.ts';
import { createTasksEmulator, type TasksEmulator } from './tasks/service.ts';
import { realTime, type Time } from './time.ts';

export { createFaults, type FaultKind, type FaultPlan, type FaultRule, type Faults, seededRandom } from './faults.ts';
export { type ManualTime, manualTime, realTime, type Time } from './time.ts';

export type EmulatorOptions = {
  /** Drives all three services; the machine's own clock when absent. */
  readonly time?: Time;
  readonly faults?: FaultPlan;
  /** Port 0 or none takes any free port. */
  readonly ports?: { readonly pubsub?: number; readonly firestore?: number; readonly tasks?: number };
  /** Where App Engine tasks go, as `http://127.0.0.1:8080`. Without it such a task is kept and tried again. */
  readonly appEngineUrl?: string;
};

type Served<Service> = Service & { readonly address: string };

export type Emulator<T extends Time = Time> = {
  /** What a client's process needs in its environment, before it builds its first client. */
  readonly env: Readonly<Record<string, string>>;
  readonly pubsub: Served<PubsubEmulator>;
  readonly firestore: Served<FirestoreEmulator>;
  readonly tasks: Served<TasksEmulator>;
  /** The public side of the App Engine app, which strips what outsiders may not set; there is one where `appEngineUrl` is given. */
  readonly appEngine: { readonly url: string } | undefined;
  readonly time: T;
  readonly faults: Faults;
  close(): Promise<void>;
};

/** Starts Pub/Sub, Firestore and Cloud Tasks on loopback, in this process. */
export async function startEmulator<T extends Time = Time>(options: EmulatorOptions & { time?: T } = {}): Promise<Emulator<T>> {
  const { ports = {} } = options;
  const time = options.time ?? (realTime() as T);
  const faults = createFaults(options.faults);
  const pubsub = createPubsubEmulator({ time, faults });
  const firestore = createFirestoreEmulator({ time, faults });
  const tasks = createTasksEmulator({ time, faults, appEngineUrl: options.appEngineUrl });
  const listening = await Promise.all([
    listen(pubsub.register, ports.pubsub ?? 0),
    listen(firestore.register, ports.firestore ?? 0),
    listen(tasks.register, ports.tasks ?? 0),
  ]);
  const [pubsubServer, firestoreServer, tasksServer] = listening;
  const front = options.appEngineUrl === undefined ? undefined : await createAppEngineFront({ target: options.appEngineUrl });
  return {
    env: {
      PUBSUB_EMULATOR_HOST: pubsubServer.address,
      FIRESTORE_EMULATOR_HOST: firestoreServer.address,
      CLOUD_TASKS_EMULATOR_HOST: tasksServer.address,
      METADATA_SERVER_DETECTION: 'none',
    },
    pubsub: { ...pubsub, address: pubsubServer.address },
    firestore: { ...firestore, address: firestoreServer.address },
    tasks: { ...tasks, address: tasksServer.address },
    appEngine: front && { url: front.url },
    time,
    faults,
    async close() {
      pubsub.close();
      firestore.close();
      tasks.close();
      time.close();
      await Promise.all([...listening.map((server) => server.close()), front?.close()]);
    },
  };
}
