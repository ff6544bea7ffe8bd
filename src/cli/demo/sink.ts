import { Firestore, type Transaction } from '@google-cloud/firestore';
import { attribute, type Message } from '../../shared/message.ts';
import type { Context } from '../../shared/ports.ts';
import { dueAttribute } from './input.ts';

/** References of a client that has made no call yet need the project to be given. */
const db = new Firestore({ projectId: process.env.GOOGLE_CLOUD_PROJECT ?? '' });

/** The demo's final handler: each run adds one document, in the transaction that records the message where there is one. */
export default async function recordEffect({ attributes }: Message, context: Context & { transaction?: Transaction }): Promise<void> {
  const dueAt = attributes[dueAttribute];
  const effect = {
    key: attributes[attribute.key] ?? '',
    stream: attributes[attribute.stream] ?? '',
    seq: Number(attributes[attribute.sequence] ?? 0),
    dueMs: dueAt === undefined ? 0 : Date.parse(dueAt),
  };
  const ref = db.collection('ptk-demo-effects').doc();
  if (context.transaction) context.transaction.create(ref, effect);
  else await ref.create(effect);
}
