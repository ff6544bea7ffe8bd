import { Firestore } from '@google-cloud/firestore';
import { ratePerSecond } from '../measure/rounds.ts';
import { leanClient } from './lean-client.ts';
import { encodedFields, encoderOf, fieldBytes, numbered } from './raw-client.ts';

export type FirestoreLoad = {
  /** Documents created a second, each by a Commit of its own. */
  creates(durationMs: number): Promise<number>;
  /** Transactions a second that read a document of their own and write it back. */
  transactions(durationMs: number): Promise<number>;
  close(): void;
};

const database = 'projects/bench/databases/(default)';
const service = '/google.firestore.v1.Firestore';
const placeholder = '0000000000';
const lanes = 20;
const fields = { name: { stringValue: 'x'.repeat(60) }, count: { integerValue: 1 }, at: { timestampValue: { seconds: 1_700_000_000 } } };

/** Commit and BatchGetDocuments as the Node client sends them, over one connection. */
export function openFirestoreLoad(address: string): FirestoreLoad {
  const client = leanClient(address);
  const encode = encoderOf('@google-cloud/firestore', 'v1.json');
  const name = (collection: string) => `${database}/documents/${collection}/${placeholder}`;
  const commit = (writes: object[]) => encode('google.firestore.v1.CommitRequest', { database, writes });
  const nextCreate = numbered(commit([{ update: { name: name('created'), fields }, currentDocument: { exists: false } }]), placeholder);
  const nextRead = numbered(
    encode('google.firestore.v1.BatchGetDocumentsRequest', {
      database,
      documents: [name('changed')],
      newTransaction: { readWrite: {} },
    }),
    placeholder,
  );
  const nextWrite = numbered(commit([{ update: { name: name('changed'), fields } }]), placeholder);
  const create = async () => {
    await client.unary(`${service}/Commit`, nextCreate());
  };
  const transaction = async () => {
    const [read, write] = [nextRead(), nextWrite()];
    const answers = await client.serverStream(`${service}/BatchGetDocuments`, read);
    const [id] = answers.flatMap((answer) => fieldBytes(answer, 3));
    if (!id) throw new Error('BatchGetDocuments began no transaction');
    await client.unary(`${service}/Commit`, Buffer.concat([write, encodedFields(3, [id])]));
  };
  return {
    creates: (durationMs) => ratePerSecond(lanes, durationMs, create),
    transactions: (durationMs) => ratePerSecond(lanes, durationMs, transaction),
    close: () => client.close(),
  };
}

const writers = 20;

export type ContendedCounter = {
  /** Increments a second while 20 of them always compete; each is tried until it is in. */
  increments(durationMs: number): Promise<number>;
  close(): Promise<void>;
};

/** The real client's runTransaction, get and set, on one document. */
export async function openContendedCounter(address: string): Promise<ContendedCounter> {
  // The client reads the address in its constructor, and asks the metadata server for credentials unless told that there is none.
  process.env.METADATA_SERVER_DETECTION = 'none';
  process.env.FIRESTORE_EMULATOR_HOST = address;
  const firestore = new Firestore({ projectId: 'bench' });
  delete process.env.FIRESTORE_EMULATOR_HOST;
  const counter = firestore.doc('counters/contended');
  await counter.set({ count: 0 });
  let expected = 0;
  const increment = async () => {
    await firestore.runTransaction(
      async (transaction) => {
        const count: number = (await transaction.get(counter)).get('count');
        transaction.set(counter, { count: count + 1 });
      },
      { maxAttempts: 1_000 },
    );
    expected += 1;
  };
  return {
    async increments(durationMs) {
      const rate = await ratePerSecond(writers, durationMs, increment);
      const count = (await counter.get()).get('count');
      if (count !== expected) throw new Error(`the counter is at ${count} after ${expected} increments`);
      return rate;
    },
    close: () => firestore.terminate(),
  };
}
