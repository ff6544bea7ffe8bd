import { ToolkitError } from '../shared/errors.ts';

export type Environment = Readonly<Record<string, string | undefined>>;
export type Deployable = 'dedup' | 'delay' | 'fifo' | 'appengine';
/** What reads these settings: a deployable, or a command that works on what it leaves. */
export type Program = Deployable | 'redrive' | 'relay' | 'fifoCommand' | 'delayCommand';

type Setting = {
  readonly about: string;
  /** Programs that do not start without it. */
  readonly requiredBy?: readonly Program[];
  readonly default?: string;
  readonly oneOf?: readonly string[];
  readonly pattern?: RegExp;
};

/** Short or full. */
const topic = String.raw`(projects\/[^/,]+\/topics\/)?[A-Za-z][\w.~+%-]{2,254}`;
export const topicName = new RegExp(`^${topic}$`);
const queue = String.raw`projects\/[^/,]+\/locations\/[^/,]+\/queues\/[A-Za-z0-9-]+`;

/** Every text setting of the deployables (**wire**); numbers stand in the option tables of their features. */
export const settings = {
  GOOGLE_CLOUD_PROJECT: {
    about: 'Project of every resource.',
    requiredBy: ['dedup', 'delay', 'fifo', 'appengine', 'redrive', 'relay', 'fifoCommand', 'delayCommand'],
  },
  FIRESTORE_DATABASE: { about: 'Firestore database.', default: '(default)' },
  COLLECTION_PREFIX: { about: "Put in front of every collection's name.", default: '', pattern: /^[\w-]{0,64}$/ },
  CONSUMER: {
    about: 'Under whose name keys and cursors are kept; never shared between consumers.',
    requiredBy: ['dedup', 'fifo', 'fifoCommand'],
  },
  DEAD_LETTER_TOPIC: {
    about: 'Topic for what can never be handled; without it such a message is logged as an error and ends.',
    pattern: topicName,
  },
  SINK: { about: 'Where a message goes: `topic:NAME`, `https://…` or `module:./path.js`.', requiredBy: ['dedup', 'fifo'] },
  SUBSCRIPTION: {
    about: 'The subscription that pushes here; where it is set, its times are checked against the lease and the lifetime of keys.',
  },
  STORE: {
    about: 'Where dedup keys live; `two-tier`: Redis in front, Firestore decides.',
    default: 'firestore',
    oneOf: ['firestore', 'redis', 'two-tier'],
  },
  DEDUP_MODE: {
    about:
      '`lease`: claim, run, end. `inbox`: the handler writes in the transaction that records the message (module sinks). `shadow`: counts what it would not run, and runs it. `off`: fifo alone.',
    default: 'lease',
    oneOf: ['lease', 'inbox', 'shadow', 'off'],
  },
  DEDUP_KEY: {
    about:
      'What makes two messages the same: `message-id`, `cloudevent`, `attribute:NAME,…`, `payload` or `payload:JSONPATH;…`; else `ptk-key`, CloudEvents ids or the message id.',
  },
  DEDUP_MISSING_KEY: {
    about: 'A message without that key is a dead letter, or runs without dedup.',
    default: 'dead-letter',
    oneOf: ['dead-letter', 'run'],
  },
  DEDUP_ON_OUTAGE: {
    about: 'While the store is down messages are given back (`closed`), or run without dedup (`open`).',
    default: 'closed',
    oneOf: ['closed', 'open'],
  },
  DEDUP_EFFECTS: {
    about: '`external`: a run that died is not run again before `reconcile`, an export of the module sink, has said what became of it.',
    default: 'internal',
    oneOf: ['internal', 'external'],
  },
  FIFO_EARLY: {
    about: 'An early message is stored and acked until its turn (`park`), or given back, which is a delivery attempt each time (`nack`).',
    default: 'park',
    oneOf: ['park', 'nack'],
  },
  FIFO_ON_POISON: {
    about:
      'A number that failed `FIFO_MAX_ATTEMPTS` times stops its stream (`block`), or the stream goes on without it (`dead-letter`), or goes on to `FIFO_LANE_TOPIC` (`divert`).',
    default: 'block',
    oneOf: ['block', 'dead-letter', 'divert'],
  },
  FIFO_LANE_TOPIC: {
    about: 'Where the numbers of a stream go, in their order, once `FIFO_ON_POISON=divert` has diverted it.',
    pattern: topicName,
  },
  FIFO_ON_NEW_EPOCH: {
    about:
      "Numbers of a publisher's new counter stop their stream until an operator has looked (`block`), or it follows at once (`follow`).",
    default: 'block',
    oneOf: ['block', 'follow'],
  },
  FIFO_START_AT: {
    about: 'The number that the consumer starts with in a stream that it has not seen, or `first-seen`.',
    default: '1',
    pattern: /^([1-9]\d{0,14}|first-seen)$/,
  },
  FIFO_ON_GAP: {
    about: 'A missing number that no outbox entry knows (of a publisher in `direct` mode) is reported, or passed over (`skip`).',
    default: 'report',
    oneOf: ['report', 'skip'],
  },
  REDIS_URL: {
    about: 'Of the Redis that keeps dedup keys, with `STORE=redis` or `two-tier`; may hold user and password.',
    pattern: /^rediss?:\/\/./,
  },
  REDIS_CLUSTER: { about: 'Whether `REDIS_URL` is a node of a cluster.', default: 'off', oneOf: ['on', 'off'] },
  REDIS_CA_FILE: { about: 'PEM file of the CA that signed the certificate of Redis.' },
  TASK_QUEUES: {
    about: 'Full names of the queues that hold delayed messages, comma-separated.',
    requiredBy: ['delay', 'appengine', 'delayCommand'],
    pattern: new RegExp(`^${queue}(,${queue})*$`),
  },
  DELAY_LEDGER: {
    about:
      'Messages with a `ptk-delay-id` are known by it in the ledger (`ids`), or every delayed one, by its key where it has no id (`all`).',
    default: 'ids',
    oneOf: ['ids', 'all'],
  },
  DELAY_MODE: {
    about: 'A task calls the release (`handler`), or publishes by itself in the name of `RELEASE_ACCOUNT` (`handler-less`).',
    default: 'handler',
    oneOf: ['handler', 'handler-less'],
  },
  RELEASE_URL: {
    about:
      'Where the release runs, if not on App Engine: tasks call it with an OIDC token of `RELEASE_ACCOUNT`, and it takes no other calls.',
    pattern: /^(https:\/\/[A-Za-z0-9.-]+|http:\/\/(localhost|127\.0\.0\.1|\[::1\]))(:\d{1,5})?$/,
  },
  RELEASE_ACCOUNT: {
    about: 'Service account that tasks speak for, with `RELEASE_URL` or `DELAY_MODE=handler-less`.',
    pattern: /^[^\s@]+@[^\s@]+$/,
  },
  RELEASE_SERVICE: { about: 'App Engine service that releases; the default service when absent.', pattern: /^[a-z][a-z0-9-]{0,62}$/ },
  TARGET_TOPICS: {
    about: 'Topics that a message may name in `ptk-target` instead of `FINAL_TOPIC`, comma-separated.',
    pattern: new RegExp(`^${topic}(,${topic})*$`),
  },
  FINAL_TOPIC: { about: 'Topic of messages that are due.', requiredBy: ['delay', 'appengine'], pattern: topicName },
  LOG_LEVEL: { about: 'Least severity that is logged.', default: 'info', oneOf: ['debug', 'info', 'warn', 'error'] },
} as const satisfies Record<string, Setting>;

/** What has no meaning where effect and record commit together. */
const leaseModeOnly = { DEDUP_MISSING_KEY: 'run', DEDUP_ON_OUTAGE: 'open', DEDUP_EFFECTS: 'external' };

export type SettingName = keyof typeof settings;
export type Settings = { readonly [Name in SettingName]: string };

/**
 * Reads and checks every setting at once; an optional one that is not set is empty.
 * @throws INVALID_SETTINGS naming the variable, what it holds and what it may hold
 */
export function readSettings(program: Program, environment: Environment): Settings {
  const values: Record<string, string> = {};
  for (const [name, setting] of Object.entries<Setting>(settings)) {
    const value = environment[name] || setting.default || '';
    if (value === '' && setting.requiredBy?.includes(program)) throw invalid(`${name} is not set; ${program} needs it. ${setting.about}`);
    if (value !== '' && setting.oneOf && !setting.oneOf.includes(value))
      throw invalid(`${name} is "${value}"; it must be one of ${setting.oneOf.join(', ')}`);
    if (value !== '' && setting.pattern && !setting.pattern.test(value))
      throw invalid(`${name} is "${withoutSecret(value)}", which is not of its form. ${setting.about}`);
    values[name] = value;
  }
  if (values.FIFO_ON_POISON === 'divert' && values.FIFO_LANE_TOPIC === '')
    throw invalid('FIFO_LANE_TOPIC is not set; FIFO_ON_POISON=divert needs it');
  for (const [name, value] of [
    ['DELAY_MODE', 'handler-less'],
    ['RELEASE_URL', values.RELEASE_URL],
  ] as const)
    if (value && values[name] === value && values.RELEASE_ACCOUNT === '')
      throw invalid(`RELEASE_ACCOUNT is not set; ${name}=${value} needs it`);
  if (values.DELAY_MODE === 'handler-less' && values.DELAY_LEDGER === 'all')
    throw invalid('DELAY_LEDGER=all needs DELAY_MODE=handler: a task that publishes by itself asks no ledger');
  if (values.STORE !== 'firestore' && values.REDIS_URL === '') throw invalid(`REDIS_URL is not set; STORE=${values.STORE} needs it`);
  if (values.STORE !== 'firestore' && values.DEDUP_MODE === 'inbox')
    throw invalid('DEDUP_MODE=inbox needs STORE=firestore: effect and record commit in one transaction');
  if (values.DEDUP_MODE === 'inbox')
    for (const [name, value] of Object.entries(leaseModeOnly))
      if (values[name] === value)
        throw invalid(`${name}=${value} needs DEDUP_MODE=lease: in an inbox effect and record are one transaction`);
  return values as Settings;
}

export const invalid = (message: string): ToolkitError => new ToolkitError('INVALID_SETTINGS', message);

/** A URL may hold a password, and so may what was meant to be one. */
export const withoutSecret = (text: string): string => text.replace(/^.*@/s, '…@');
