import type { Firestore } from '@google-cloud/firestore';
import grpc from '@grpc/grpc-js';
import { createFaults, type Faults } from '../../src/emulator/faults.ts';
import type { Timestamp } from '../../src/emulator/firestore/instants.ts';
import { createFirestoreEmulator, type FirestoreEmulator, type FirestoreOptions } from '../../src/emulator/firestore/service.ts';
import type { Fields } from '../../src/emulator/firestore/values.ts';
import type { WriteResult } from '../../src/emulator/firestore/writes.ts';
import { readProtos, serviceOf } from '../../src/emulator/grpc.ts';
import { noJournal } from '../../src/emulator/journal.ts';
import { listen } from '../../src/emulator/listen.ts';
import { realTime, type Time } from '../../src/emulator/time.ts';
import { firestoreClient, googleTarget, type Target } from '../support/targets.ts';

export type EmbeddedFirestore<T extends Time> = FirestoreEmulator & {
  readonly target: Target;
  readonly time: T;
  readonly faults: Faults;
  stop(): Promise<void>;
};

export async function embeddedFirestore<T extends Time = Time>(
  time: T = realTime() as Time as T,
  options: Partial<FirestoreOptions> = {},
): Promise<EmbeddedFirestore<T>> {
  const faults = createFaults();
  const emulator = createFirestoreEmulator({ faults, journal: noJournal, ...options, time });
  const server = await listen(emulator.register, 0);
  return {
    ...emulator,
    target: { name: 'embedded', address: server.address },
    time,
    faults,
    async stop() {
      emulator.close();
      time.close();
      await server.close();
    },
  };
}

/** The embedded emulator, and Google's where it runs. */
export function firestoreTargets(embedded: { readonly target: Target }): Target[] {
  const google = googleTarget('firestore');
  return google ? [embedded.target, google] : [embedded.target];
}

let projects = 0;

/** A test with a client and a project of its own. */
export function withFirestore(
  target: Target & { readonly projectId?: string },
  run: (db: Firestore, projectId: string) => Promise<void>,
): () => Promise<void> {
  return async () => {
    const projectId = target.projectId ?? `ptk-${process.pid}-${projects++}`;
    const db = firestoreClient(target.address, projectId);
    try {
      await run(db, projectId);
    } finally {
      await db.terminate();
    }
  };
}

/** What the answers of several calls hold. */
export type RawAnswer = {
  readonly transaction?: Buffer;
  readonly commitTime?: Timestamp;
  readonly readTime?: Timestamp | null;
  readonly document?: object | null;
  readonly found?: object | null;
  readonly missing?: string;
  readonly writeResults?: readonly WriteResult[];
  readonly name?: string;
  readonly fields?: Fields;
  readonly nextPageToken?: string;
};

/** One request on the wire, tried once; a stream's answers are collected. */
export type RawFirestore = (method: string, request?: object) => Promise<readonly RawAnswer[]>;

export const firestoreDefinition = serviceOf(readProtos('@google-cloud/firestore', 'v1.json'), 'google.firestore.v1.Firestore');
const RawClient = grpc.makeGenericClientConstructor(firestoreDefinition, 'Firestore');

/** A test below the client: every field of a request and an answer in the open, nothing tried again. */
export function withRawFirestore(target: Target, run: (raw: RawFirestore, database: string) => Promise<void>): () => Promise<void> {
  return async () => {
    const client = new RawClient(target.address, grpc.credentials.createInsecure());
    try {
      await run(
        (method, request = {}) => callOnce(client, method, request),
        `projects/ptk-${process.pid}-${projects++}/databases/(default)`,
      );
    } finally {
      client.close();
    }
  };
}

function callOnce(client: grpc.Client, name: string, request: object): Promise<RawAnswer[]> {
  const method = firestoreDefinition[name];
  if (!method) throw new Error(`the protos hold no method ${name}`);
  const { path, requestSerialize, responseDeserialize } = method;
  return new Promise((resolve, reject) => {
    if (!method.responseStream) {
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, (error, answer) =>
        error ? reject(error) : resolve([answer]),
      );
      return;
    }
    const answers: RawAnswer[] = [];
    const both = method.requestStream ? client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize) : undefined;
    both?.end(request);
    const stream = both ?? client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request);
    stream.on('data', (answer: RawAnswer) => answers.push(answer));
    stream.on('end', () => resolve(answers));
    stream.on('error', reject);
  });
}

export function codeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'OK',
    (error: { code?: unknown }) => (typeof error.code === 'number' ? grpc.status[error.code] : error),
  );
}
