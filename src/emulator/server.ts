import type { RequestListener } from 'node:http';
import { control } from './control.ts';
import { createFaults, type FaultPlan, type Faults } from './faults.ts';
import { createFirestoreEmulator, type FirestoreEmulator, type FirestoreOptions } from './firestore/service.ts';
import type { CallParts } from './grpc.ts';
import { type Journal, noJournal, sqliteJournal } from './journal.ts';
import { type ListeningServer, listen } from './listen.ts';
import { createIdentity, type Identity } from './oidc.ts';
import { isRest } from './pubsub/rest.ts';
import { createPubsubEmulator, type PubsubEmulator, type PubsubOptions } from './pubsub/service.ts';
import { createAppEngineFront } from './tasks/app-engine-front.ts';
import { createTasksEmulator, type TasksEmulator, type TasksOptions } from './tasks/service.ts';
import { realTime, type Time } from './time.ts';

export {
  createFaults,
  type FaultKind,
  type FaultPlan,
  type FaultRule,
  type Faults,
  faultKinds,
  seededRandom,
} from './faults.ts';
export { type ManualTime, manualTime, realTime, type Time } from './time.ts';

export type EmulatorOptions = {
  /** Drives all three services; the machine's own clock when absent. */
  readonly time?: Time;
  readonly faults?: FaultPlan;
  /** Port 0 or none takes any free port. */
  readonly ports?: { readonly pubsub?: number; readonly firestore?: number; readonly tasks?: number };
  /** Where App Engine tasks go, as `http://127.0.0.1:8080`. Without it such a task is kept and tried again. */
  readonly appEngineUrl?: string;
  /** A folder that keeps all state, written before a call is answered; without it the state ends with the process. */
  readonly dataDir?: string;
  readonly pubsub?: Omit<PubsubOptions, keyof CallParts | 'identity'>;
  readonly firestore?: Omit<FirestoreOptions, keyof CallParts>;
  readonly tasks?: Omit<TasksOptions, keyof CallParts | 'identity' | 'appEngineUrl'>;
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
  /** Makes the tokens of pushes and tasks. */
  readonly identity: Identity;
  /**
   * Everything as it was at the start: no topic, document, queue or tombstone, and the faults of the beginning; with its name, one
   * Firestore database alone. Resolves once a data folder holds that too.
   */
  reset(database?: string): Promise<void>;
  /** Resolves once it has closed, by `close()` or by `POST /shutdown`; rejects where its last changes could not be written. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
};

/**
 * Starts Pub/Sub, Firestore and Cloud Tasks on loopback, in this process.
 *
 * @throws Error that names a port in use, a data folder that cannot be used, or a fault rule that is wrong
 */
export async function startEmulator<T extends Time = Time>(options: EmulatorOptions & { time?: T } = {}): Promise<Emulator<T>> {
  const time: T = options.time ?? (realTime() as Time as T);
  const faults = createFaults(options.faults);
  const journal = options.dataDir === undefined ? noJournal : sqliteJournal(options.dataDir);
  const identity = createIdentity(time);
  const parts = { time, faults, journal };
  const createServices = () => ({
    pubsub: createPubsubEmulator({ ...options.pubsub, ...parts, identity }),
    firestore: createFirestoreEmulator({ ...options.firestore, ...parts }),
    tasks: createTasksEmulator({ ...options.tasks, ...parts, identity, appEngineUrl: options.appEngineUrl }),
  });
  const services = orClose(createServices, journal);
  const emulator: { current?: Emulator<T> } = {};
  const controlled = control(() => emulator.current);
  const controlledOrRest: RequestListener = (request, response) => (isRest(request) ? services.pubsub.rest : controlled)(request, response);
  const listening: ListeningServer[] = [];
  const served = async <Service extends { register: TasksEmulator['register'] }>(
    service: Service,
    port = 0,
    onRequest = controlled,
  ): Promise<Served<Service>> => {
    const server = await listen(service.register, port, onRequest);
    listening.push(server);
    return { ...service, address: server.address };
  };
  const stop = () => closeAll(services, time, listening, journal);
  try {
    const { ports = {}, appEngineUrl } = options;
    const pubsub = await served(services.pubsub, ports.pubsub, controlledOrRest);
    const firestore = await served(services.firestore, ports.firestore);
    const tasks = await served(services.tasks, ports.tasks);
    const front = appEngineUrl === undefined ? undefined : await createAppEngineFront({ target: appEngineUrl });
    const { promise: closed, resolve: noteClosed, reject: noteFailure } = Promise.withResolvers<void>();
    // Who closes it hears of it too.
    closed.catch(() => {});
    let closing: Promise<void> | undefined;
    const started: Emulator<T> = {
      env: {
        PUBSUB_EMULATOR_HOST: pubsub.address,
        FIRESTORE_EMULATOR_HOST: firestore.address,
        CLOUD_TASKS_EMULATOR_HOST: tasks.address,
        METADATA_SERVER_DETECTION: 'none',
      },
      pubsub,
      firestore,
      tasks,
      appEngine: front && { url: front.url },
      time,
      faults,
      identity,
      async reset(database) {
        if (database !== undefined) {
          services.firestore.reset(database);
        } else {
          for (const { reset } of Object.values(services)) reset();
          faults.reset();
        }
        await journal.saved();
      },
      closed,
      close() {
        closing ??= Promise.all([stop(), front?.close()]).then(() => {});
        closing.then(noteClosed, noteFailure);
        return closing;
      },
    };
    emulator.current = started;
    return started;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A folder that another option is refused after must not stay in use. */
function orClose<Made>(create: () => Made, journal: Journal): Made {
  try {
    return create();
  } catch (error) {
    journal.close();
    throw error;
  }
}

type Closable = { close(): void };

async function closeAll(
  services: Record<string, Closable>,
  time: Time,
  listening: readonly ListeningServer[],
  journal: Journal,
): Promise<void> {
  for (const service of Object.values(services)) service.close();
  time.close();
  await Promise.all(listening.map((server) => server.close()));
  journal.close();
}
