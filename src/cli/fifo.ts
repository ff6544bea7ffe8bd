import { parseArgs } from 'node:util';
import { PubSub } from '@google-cloud/pubsub';
import { firestoreFifoStore } from '../shared/adapters/firestore-fifo.ts';
import { pubsubPublisher } from '../shared/adapters/pubsub.ts';
import { system } from '../shared/adapters/system.ts';
import { type CommandOutcome, createFifoCommands, type FifoCommands, type StreamStatus } from '../shared/fifo/commands.ts';
import { deadLetterTopic } from '../shared/transports/dead-letters.ts';
import { connectFirestore } from '../shell/clients.ts';
import { lineLog } from '../shell/log.ts';
import { type Environment, invalid, readSettings, topicName } from '../shell/settings.ts';

const flags = {
  consumer: { type: 'string' },
  number: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  epoch: { type: 'string' },
  'dead-letter-topic': { type: 'string' },
  force: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof flags }>>['values'];

/** Shows and changes where a consumer stands in its streams; resolves to the exit code, which is 1 where a command was refused. */
export async function runFifo(args: string[], environment: Environment = process.env, print = console.log): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: flags, allowPositionals: true });
  const [verb = '', stream = '', ...more] = positionals;
  const act = checkedVerb(verb, stream, more, values);
  const topic = values['dead-letter-topic'] ?? environment.DEAD_LETTER_TOPIC ?? '';
  if (topic !== '' && !topicName.test(topic)) throw new Error(`--dead-letter-topic is "${topic}", which is no name of a topic`);
  const settings = readSettings('fifoCommand', { ...environment, ...(values.consumer !== undefined && { CONSUMER: values.consumer }) });
  const db = await connectFirestore(settings);
  const pubsub = new PubSub({ projectId: settings.GOOGLE_CLOUD_PROJECT });
  try {
    const log = lineLog((line) => process.stderr.write(line), 'warn');
    const deadLetters = topic === '' ? noLetters : deadLetterTopic(pubsubPublisher(pubsub), topic);
    const store = firestoreFifoStore(db, system.clock, settings.COLLECTION_PREFIX);
    const answer = await act(createFifoCommands({ consumer: settings.CONSUMER, store, system, log, deadLetters }));
    if ('kind' in answer && answer.kind === 'refused') {
      print(values.json ? JSON.stringify({ fifo: { refused: answer.reason } }) : `refused: ${answer.reason}`);
      return 1;
    }
    const streams = Array.isArray(answer)
      ? answer
      : ['kind' in answer ? (answer as Extract<CommandOutcome, { kind: 'done' }>).status : answer];
    if (values.json) print(JSON.stringify({ fifo: { streams } }));
    else for (const line of linesOf(streams as readonly StreamStatus[])) print(line);
    return 0;
  } finally {
    await Promise.all([db.terminate(), pubsub.close()]);
  }
}

type Answer = StreamStatus | CommandOutcome | readonly StreamStatus[];

function checkedVerb(verb: string, stream: string, more: readonly string[], values: Values): (commands: FifoCommands) => Promise<Answer> {
  if (more.length > 0) throw new Error(`"${more[0]}" is one word too many; a command takes one stream`);
  if (verb === 'blocked') return (commands) => commands.blocked();
  const verbs = ['status', 'skip', 'resume', 'reset', 'replay'];
  if (!verbs.includes(verb)) throw new Error(`"${verb}" is no command; it must be one of blocked, ${verbs.join(', ')}`);
  if (stream === '') throw new Error(`${verb} needs a stream`);
  const how = { force: values.force };
  const number = (flag: 'number' | 'from' | 'to' | 'epoch', least: number): number | undefined => {
    const text = values[flag];
    if (text === undefined) return undefined;
    const value = /^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN;
    if (!Number.isSafeInteger(value) || value < least) throw new Error(`--${flag} is "${text}"; it must be a whole number from ${least}`);
    return value;
  };
  const needed = (flag: 'number' | 'from'): number => {
    const value = number(flag, 1);
    if (value === undefined) throw new Error(`${verb} needs --${flag}`);
    return value;
  };
  if (verb === 'status') return (commands) => commands.status(stream);
  if (verb === 'resume') return (commands) => commands.resume(stream, how);
  if (verb === 'skip') {
    const seq = needed('number');
    return (commands) => commands.skip(stream, seq, how);
  }
  if (verb === 'replay') {
    const from = needed('from');
    return (commands) => commands.replay(stream, from, how);
  }
  const [epoch, to] = [number('epoch', 1), number('to', 0)];
  return (commands) => commands.reset(stream, { ...how, ...(epoch !== undefined && { epoch }), ...(to !== undefined && { to }) });
}

/** A number whose message is parked is not passed over without a place for the message. */
const noLetters = {
  publish: () => Promise.reject(invalid('its message is parked; DEAD_LETTER_TOPIC or --dead-letter-topic must say where that goes')),
};

function linesOf(streams: readonly StreamStatus[]): string[] {
  if (streams.length === 0) return ['no stream stands still'];
  return streams.map(({ stream, state, last, epoch, attempts, heldMs, blocked, parked, lowestParked, skipped, round }) =>
    [
      `${stream}: ${state}`,
      `last ${last} of epoch ${epoch}`,
      blocked && `stopped at ${blocked.seq} (${blocked.reason}) since ${new Date(blocked.sinceMs).toISOString()}`,
      blocked?.lane !== undefined && `goes to ${blocked.lane}`,
      heldMs > 0 && `held for ${heldMs} ms more`,
      attempts > 0 && `${attempts} attempts`,
      parked > 0 && `${parked} parked, the lowest ${lowestParked?.seq} of epoch ${lowestParked?.epoch}`,
      skipped > 0 && `${skipped} skipped`,
      round > 0 && `round ${round}`,
    ]
      .filter((part) => part)
      .join(', '),
  );
}
