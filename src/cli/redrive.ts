import { parseArgs } from 'node:util';
import { PubSub } from '@google-cloud/pubsub';
import { pubsubPublisher } from '../shared/adapters/pubsub.ts';
import { system } from '../shared/adapters/system.ts';
import type { Redrive } from '../shared/dedup/decide.ts';
import { openDedupStore } from '../shell/dedup-store.ts';
import { lineLog } from '../shell/log.ts';
import { type Environment, readSettings, topicName } from '../shell/settings.ts';
import { letterBox } from './redrive/letter-box.ts';
import { redrive } from './redrive/redriving.ts';
import { header, rowOf } from './redrive/table.ts';

const flags = {
  subscription: { type: 'string' },
  as: { type: 'string' },
  'message-id': { type: 'string', multiple: true, default: [] as string[] },
  topic: { type: 'string' },
  store: { type: 'string' },
  limit: { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
} as const;

/** Decides dead letters about dedup keys; prints a table, and the counts as one line of JSON. */
export async function runRedrive(args: string[], environment: Environment = process.env, print = console.log): Promise<void> {
  const { values } = parseArgs({ args, options: flags });
  const { subscription, topic, 'message-id': messageIds, 'dry-run': dryRun } = values;
  if (!subscription) throw new Error('--subscription is missing; it names the subscription of the dead letters');
  const as = checkedAs(values.as);
  const limit = checkedLimit(values.limit);
  if (topic !== undefined && !topicName.test(topic)) throw new Error(`--topic is "${topic}", which is no name of a topic`);
  const settings = readSettings('redrive', { ...environment, ...(values.store !== undefined && { STORE: values.store }) });
  const log = lineLog((line) => process.stderr.write(line), 'warn');
  const { store, close } = await openDedupStore(settings, log);
  const pubsub = new PubSub({ projectId: settings.GOOGLE_CLOUD_PROJECT });
  let rows = 0;
  try {
    const redriven = await redrive({
      letters: letterBox(pubsub, subscription),
      store,
      publisher: pubsubPublisher(pubsub),
      system,
      as,
      topic,
      messageIds: new Set(messageIds),
      limit,
      dryRun,
      tell(found, fate) {
        if (rows === 0) print(header);
        rows += 1;
        print(rowOf(found, fate));
      },
    });
    print(JSON.stringify({ redrive: redriven }));
  } finally {
    await Promise.all([close(), pubsub.close()]);
  }
}

function checkedAs(text: string | undefined): Redrive {
  if (text === 'accept-new' || text === 'keep-old') return text;
  throw new Error(`--as is ${text === undefined ? 'missing' : `"${text}"`}; it must be accept-new or keep-old`);
}

function checkedLimit(text: string | undefined): number {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error(`--limit is "${text}"; it must be a whole number from 1 to 999999999`);
  return Number(text);
}
