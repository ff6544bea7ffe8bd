import { describe, expect, test } from 'vitest';
import { type Deployable, readSettings } from '../../src/shell/settings.ts';

const queue = 'projects/p/locations/l/queues/q';
const dedup = { GOOGLE_CLOUD_PROJECT: 'p', CONSUMER: 'c', SINK: 'topic:out' };
const delay = { GOOGLE_CLOUD_PROJECT: 'p', TASK_QUEUES: queue, FINAL_TOPIC: 'final' };
const needed = { dedup, fifo: dedup, delay, appengine: delay } satisfies Record<Deployable, object>;
const invalid = (reason: RegExp) => expect.objectContaining({ code: 'INVALID_SETTINGS', message: expect.stringMatching(reason) });

/** The sentence with which the settings are refused. */
function refusal(deployable: Deployable, environment: Record<string, string>): string {
  try {
    readSettings(deployable, environment);
  } catch (error) {
    return (error as Error).message;
  }
  return 'taken';
}

describe('readSettings', () => {
  test.each(Object.entries(needed) as [Deployable, Record<string, string>][])(
    '%s starts with what it needs, and with nothing less',
    (deployable, environment) => {
      expect(readSettings(deployable, environment)).toMatchObject(environment);
      for (const name of Object.keys(environment)) {
        const { [name]: _, ...less } = environment;
        expect(() => readSettings(deployable, less)).toThrow(invalid(new RegExp(`^${name} is not set; ${deployable} needs it`)));
        expect(() => readSettings(deployable, { ...less, [name]: '' })).toThrow(invalid(new RegExp(`^${name} is not set`)));
      }
    },
  );

  test('fills in what is not set', () => {
    expect(readSettings('dedup', dedup)).toEqual({
      ...dedup,
      FIRESTORE_DATABASE: '(default)',
      COLLECTION_PREFIX: '',
      DEAD_LETTER_TOPIC: '',
      SUBSCRIPTION: '',
      STORE: 'firestore',
      DEDUP_MODE: 'lease',
      DEDUP_KEY: '',
      DEDUP_MISSING_KEY: 'dead-letter',
      DEDUP_ON_OUTAGE: 'closed',
      DEDUP_EFFECTS: 'internal',
      FIFO_EARLY: 'park',
      FIFO_ON_POISON: 'block',
      FIFO_LANE_TOPIC: '',
      FIFO_ON_NEW_EPOCH: 'block',
      FIFO_START_AT: '1',
      FIFO_ON_GAP: 'report',
      REDIS_URL: '',
      REDIS_CLUSTER: 'off',
      REDIS_CA_FILE: '',
      TASK_QUEUES: '',
      DELAY_LEDGER: 'ids',
      DELAY_MODE: 'handler',
      RELEASE_URL: '',
      RELEASE_ACCOUNT: '',
      RELEASE_SERVICE: '',
      TARGET_TOPICS: '',
      FINAL_TOPIC: '',
      LOG_LEVEL: 'info',
    });
  });

  test.each([
    ['STORE', 'mongo', 'firestore, redis, two-tier'],
    ['STORE', 'Redis', 'firestore, redis, two-tier'],
    ['DEDUP_MODE', 'none', 'lease, inbox, shadow, off'],
    ['DEDUP_MISSING_KEY', 'ignore', 'dead-letter, run'],
    ['DEDUP_ON_OUTAGE', 'local', 'closed, open'],
    ['DEDUP_EFFECTS', 'outside', 'internal, external'],
    ['FIFO_EARLY', 'hold', 'park, nack'],
    ['FIFO_ON_POISON', 'skip', 'block, dead-letter, divert'],
    ['FIFO_ON_NEW_EPOCH', 'ignore', 'block, follow'],
    ['FIFO_ON_GAP', 'tombstone', 'report, skip'],
    ['REDIS_CLUSTER', 'true', 'on, off'],
    ['DELAY_LEDGER', 'none', 'ids, all'],
    ['DELAY_MODE', 'handlerless', 'handler, handler-less'],
    ['LOG_LEVEL', 'trace', 'debug, info, warn, error'],
  ])('%s=%s is refused with what it may be', (name, value, allowed) => {
    expect(refusal('dedup', { ...dedup, [name]: value })).toBe(`${name} is "${value}"; it must be one of ${allowed}`);
  });

  test.each([
    ['DEAD_LETTER_TOPIC', 'dead'],
    ['DEAD_LETTER_TOPIC', 'projects/p/topics/dead'],
    ['FINAL_TOPIC', 'abc'],
    ['FINAL_TOPIC', `a${'x'.repeat(254)}`],
    ['TASK_QUEUES', `${queue},${queue}-2`],
    ['TARGET_TOPICS', 'one'],
    ['TARGET_TOPICS', 'one,projects/p/topics/two'],
    ['RELEASE_SERVICE', 'release-1'],
    ['RELEASE_ACCOUNT', 'tasks@p.iam.gserviceaccount.com'],
    ['COLLECTION_PREFIX', 'x'.repeat(64)],
    ['FIFO_START_AT', 'first-seen'],
    ['FIFO_START_AT', '7'],
    ['FIFO_LANE_TOPIC', 'lane'],
    ['REDIS_URL', 'redis://h'],
    ['REDIS_URL', 'rediss://:secret@h:6379/1'],
  ])('%s=%s is taken', (name, value) => {
    expect(readSettings('delay', { ...delay, [name]: value })).toMatchObject({ [name]: value });
  });

  test.each([
    ['DEAD_LETTER_TOPIC', '1dead'],
    ['DEAD_LETTER_TOPIC', 'projects/p/subscriptions/dead'],
    ['FINAL_TOPIC', 'ab'],
    ['FINAL_TOPIC', `a${'x'.repeat(255)}`],
    ['TASK_QUEUES', 'q'],
    ['TASK_QUEUES', `${queue},`],
    ['TASK_QUEUES', `${queue}, ${queue}`],
    ['TASK_QUEUES', `${queue},projects/p/queues/q`],
    ['TARGET_TOPICS', 'one,'],
    ['TARGET_TOPICS', 'one, two'],
    ['TARGET_TOPICS', 'one;two'],
    ['TARGET_TOPICS', 'projects/p/subscriptions/one'],
    ['RELEASE_ACCOUNT', 'tasks'],
    ['RELEASE_SERVICE', 'Release'],
    ['COLLECTION_PREFIX', 'a/b'],
    ['FIFO_START_AT', '0'],
    ['FIFO_START_AT', '1e3'],
    ['FIFO_START_AT', 'last'],
    ['FIFO_LANE_TOPIC', 'la ne'],
    ['COLLECTION_PREFIX', 'x'.repeat(65)],
    ['REDIS_URL', 'http://h'],
    ['REDIS_URL', 'redis://'],
  ])('%s=%s is refused for its form', (name, value) => {
    expect(refusal('delay', { ...delay, [name]: value })).toContain(`${name} is "${value}", which is not of its form.`);
  });

  const account = { RELEASE_ACCOUNT: 'tasks@p.iam.gserviceaccount.com' };
  test.each(['https://h', 'https://release.example.com:8443', 'http://localhost', 'http://127.0.0.1:8080', 'http://[::1]:8080'])(
    'tasks may call the release at %s, in the name of an account',
    (url) => {
      expect(readSettings('delay', { ...delay, ...account, RELEASE_URL: url })).toMatchObject({ RELEASE_URL: url });
      expect(refusal('appengine', { ...delay, RELEASE_URL: url })).toBe(`RELEASE_ACCOUNT is not set; RELEASE_URL=${url} needs it`);
    },
  );

  test.each([
    'h',
    'http://h',
    'ftp://h',
    'https://',
    'https://h/',
    'https://h/tasks',
    'https://h?a',
    'https://a b',
    'https://h:x',
    'http://127.0.0.10',
  ])('tasks cannot call a release at %s', (url) => {
    expect(refusal('delay', { ...delay, ...account, RELEASE_URL: url })).toContain(`RELEASE_URL is "${url}", which is not of its form.`);
  });

  test('tasks that publish by themselves need an account, and know no ledger', () => {
    const handlerless = { ...delay, DELAY_MODE: 'handler-less' };
    expect(refusal('delay', handlerless)).toBe('RELEASE_ACCOUNT is not set; DELAY_MODE=handler-less needs it');
    expect(refusal('delay', { ...handlerless, ...account, DELAY_LEDGER: 'all' })).toMatch(/^DELAY_LEDGER=all needs DELAY_MODE=handler: /);
    expect(readSettings('delay', { ...handlerless, ...account })).toMatchObject(account);
  });

  test.each(['http://user:secret@h', 'redis:user:secret@h', 'user:secret@h', 'redis//:se/secret@h', 'x://a:secret@b@h'])(
    'a refused REDIS_URL shows no password: %s',
    (url) => {
      expect(refusal('dedup', { ...dedup, REDIS_URL: url })).toMatch(/^REDIS_URL is "…@h", which is not of its form/);
    },
  );

  test('a lane needs its topic', () => {
    expect(refusal('fifo', { ...dedup, FIFO_ON_POISON: 'divert' })).toBe('FIFO_LANE_TOPIC is not set; FIFO_ON_POISON=divert needs it');
    expect(readSettings('fifo', { ...dedup, FIFO_ON_POISON: 'divert', FIFO_LANE_TOPIC: 'lane' })).toMatchObject({
      FIFO_ON_POISON: 'divert',
    });
  });

  test('Redis needs its URL, and cannot commit in the transaction of an inbox', () => {
    expect(refusal('dedup', { ...dedup, STORE: 'redis' })).toBe('REDIS_URL is not set; STORE=redis needs it');
    expect(refusal('dedup', { ...dedup, STORE: 'two-tier' })).toBe('REDIS_URL is not set; STORE=two-tier needs it');
    const redis = { ...dedup, STORE: 'redis', REDIS_URL: 'redis://h' };
    expect(readSettings('dedup', redis)).toMatchObject({ STORE: 'redis' });
    expect(refusal('dedup', { ...redis, DEDUP_MODE: 'inbox' })).toMatch(/^DEDUP_MODE=inbox needs STORE=firestore/);
  });

  test.each([
    ['DEDUP_EFFECTS', 'external'],
    ['DEDUP_ON_OUTAGE', 'open'],
    ['DEDUP_MISSING_KEY', 'run'],
  ])('%s=%s has no meaning in an inbox', (name, value) => {
    expect(refusal('dedup', { ...dedup, DEDUP_MODE: 'inbox', [name]: value })).toMatch(`${name}=${value} needs DEDUP_MODE=lease`);
  });
});
