import { parseArgs } from 'node:util';
import { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { type FaultRule, seededRandom } from '../../emulator/faults.ts';
import { pubsubPublisher } from '../../shared/adapters/pubsub.ts';
import { checkEffects, type Effect } from './check.ts';
import { readDeliveries } from './input.ts';
import { publishAll } from './publish.ts';
import { type DemoResult, progressBar, table } from './report.ts';
import { prepare } from './resources.ts';
import { projectId, type Stack, type StackOptions, startStack } from './stack.ts';
import { unrulyPublisher } from './unruly-publisher.ts';

/** For each round; Google's emulators are slow. */
const giveUpAfterMs = { embedded: 90_000, official: 300_000 };
const pollMs = 200;
const scheduleEveryMs = 2_000;

/** Resolves to the exit code: 0 when nothing was lost, doubled, out of order or early. */
export async function runDemo(args: string[]): Promise<number> {
  const { keep, ...options } = { ...readArgs(args), official: readOfficial(process.env.EMULATORS) };
  // A signal alone would end this process without its exit hook, and leave the others behind.
  process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143));
  const startedAtMs = performance.now();
  const suppressed = { count: 0 };
  const stack = await startStack({
    ...options,
    onLog: ({ reason }) => {
      if (reason === 'duplicate' || reason === 'old') suppressed.count += 1;
    },
  });
  try {
    const result = await pushThrough(stack, options, startedAtMs, suppressed);
    console.log(JSON.stringify({ demo: result }));
    if (keep) for (const [name, value] of Object.entries(stack.env)) console.log(`export ${name}=${value}`);
    if (keep) await new Promise(() => {});
    return result.lost + result.doubled + result.outOfOrder + result.early === 0 ? 0 : 1;
  } finally {
    await stack.stop();
  }
}

type DemoOptions = Pick<StackOptions, 'seed' | 'without' | 'official'> & { readonly chaos: number; readonly rounds: number };

async function pushThrough(stack: Stack, options: DemoOptions, startedAtMs: number, suppressed: { count: number }): Promise<DemoResult> {
  Object.assign(process.env, stack.env, { METADATA_SERVER_DETECTION: 'none' });
  const pubsub = new PubSub({ projectId });
  const db = new Firestore({ projectId });
  const forwarded = await prepare(stack, pubsub, options);
  const random = seededRandom(options.seed);
  const deliveries = readDeliveries(options.rounds, options.chaos, random);
  // Google's emulators take no faults: there the publisher alone makes trouble.
  const unruly = options.official ? unrulyPublisher(pubsubPublisher(pubsub), options.chaos, random) : undefined;
  if (!unruly) await stack.emulators.setFaults(faultsOf(options.chaos));
  const bar = progressBar(deliveries.length);

  const publishing = publishAll(deliveries, unruly ?? pubsubPublisher(pubsub), db);
  publishing.catch(() => {});
  const stopSchedule = everyMs(scheduleEveryMs, async () => {
    for (const command of ['relay', 'sweep']) await fetch(`${stack.urls.fifo}${command}`, { method: 'POST' });
  });
  const killAt = options.chaos > 0 ? Math.floor(deliveries.length * 0.3) : Number.POSITIVE_INFINITY;
  let killed = 0;
  for (;;) {
    const done = (await db.collection('ptk-demo-effects').count().get()).data().count;
    bar.show(done, killed > 0 ? 'fifo was killed and is back' : '');
    if (done >= killAt && killed === 0) {
      killed += 1;
      await stack.fifo.kill();
      await stack.fifo.restart();
    }
    if (done >= deliveries.length && (await stack.idle())) break;
    if (performance.now() - startedAtMs > giveUpAfterMs[options.official ? 'official' : 'embedded'] * options.rounds) break;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  stopSchedule();
  bar.end();
  const { again, knownToOutbox } = await publishing;
  const counts = unruly?.counts ?? (await stack.emulators.faultCounts());
  const found = await db.collection('ptk-demo-effects').get();
  const effects = found.docs.map(
    (document): Effect => ({ ...(document.data() as Omit<Effect, 'committedAt'>), committedAt: document.createTime }),
  );
  const findings = checkEffects(
    deliveries.map(({ key }) => key),
    effects,
  );
  await Promise.all(forwarded.map((subscription) => subscription.close()));
  await Promise.all([pubsub.close(), db.terminate()]);
  const result = {
    published: deliveries.length,
    effects: findings.effects,
    duplicatesInjected: again + (counts.duplicate ?? 0),
    duplicatesSuppressed: suppressed.count + knownToOutbox,
    lost: findings.lost,
    doubled: findings.doubled,
    outOfOrder: findings.outOfOrder,
    early: findings.early,
    seconds: Math.round((performance.now() - startedAtMs) / 100) / 10,
  };
  console.log(resultTable(result, counts, killed, new Set(deliveries.map(({ stream }) => stream)).size - 1));
  return result;
}

const resultTable = (result: DemoResult, faults: Readonly<Record<string, number>>, killed: number, streams: number): string =>
  table([
    ['published', result.published, `real GitHub webhooks, ${streams} streams`],
    ['effects', result.effects, 'documents in ptk-demo-effects'],
    ['duplicates injected', result.duplicatesInjected, `second publishes, and ${faults.duplicate ?? 0} by broker or network`],
    ['duplicates suppressed', result.duplicatesSuppressed, 'acked without a run, or known to the outbox'],
    ['held back', faults.reorder ?? 0, 'deliveries that others overtook, or requests in disorder'],
    ['answers lost', faults['answer-lost'] ?? 0, 'calls applied, then UNAVAILABLE'],
    ['transactions aborted', faults['abort-transaction'] ?? 0, ''],
    ['killed', killed, 'kill -9 of functions/fifo at work'],
    ['lost', result.lost, ''],
    ['doubled', result.doubled, ''],
    ['out of order', result.outOfOrder, ''],
    ['early', result.early, ''],
    ['seconds', result.seconds, ''],
  ]);

/** With chaos 1 every third delivery is hit. */
const faultsOf = (chaos: number): FaultRule[] =>
  chaos === 0
    ? []
    : [
        { kind: 'duplicate', probability: 0.3 * chaos },
        { kind: 'reorder', probability: 0.3 * chaos, delayMs: 1_500 },
        { kind: 'answer-lost', rpc: 'Publisher.Publish', probability: 0.1 * chaos },
        { kind: 'answer-lost', rpc: 'Firestore.Commit', probability: 0.05 * chaos },
        { kind: 'answer-lost', rpc: 'CloudTasks.CreateTask', probability: 0.1 * chaos },
        { kind: 'abort-transaction', probability: 0.05 * chaos },
      ];

function everyMs(ms: number, call: () => Promise<unknown>): () => void {
  const timer = setInterval(() => {
    call().catch(() => {});
  }, ms);
  return () => clearInterval(timer);
}

function readOfficial(emulators = 'embedded'): boolean {
  if (!['embedded', 'official'].includes(emulators)) throw new Error(`EMULATORS is ${emulators}; it must be embedded or official`);
  return emulators === 'official';
}

function readArgs(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      seed: { type: 'string', default: '1' },
      chaos: { type: 'string', default: '0.5' },
      rounds: { type: 'string', default: '1' },
      keep: { type: 'boolean', default: false },
      without: { type: 'string' },
    },
  });
  const number = (name: 'seed' | 'chaos' | 'rounds', min: number, max: number, whole: boolean) => {
    const value = Number(values[name]);
    if (!(value >= min && value <= max) || (whole && !Number.isInteger(value)))
      throw new Error(`--${name} is ${values[name]}; it must lie from ${min} to ${max}`);
    return value;
  };
  if (values.without !== undefined && !['dedup', 'fifo'].includes(values.without))
    throw new Error(`--without is ${values.without}; it must be dedup or fifo`);
  return {
    seed: number('seed', 0, 2 ** 32 - 1, true),
    chaos: number('chaos', 0, 1, false),
    rounds: number('rounds', 1, 1_000, true),
    keep: values.keep,
    without: values.without,
  };
}
