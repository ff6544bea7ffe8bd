import { describe, expect, test } from 'vitest';
import { freePort } from '../../src/cli/demo/processes.ts';
import { startAppEngine, startFunction } from '../support/deployables.ts';

const project = { GOOGLE_CLOUD_PROJECT: 'ptk-start' };
const queue = 'projects/p/locations/l/queues/q';
const delay = { ...project, FINAL_TOPIC: 'final', TASK_QUEUES: queue };
const account = { RELEASE_ACCOUNT: 'tasks@p.iam.gserviceaccount.com' };

/** The sentence with which a deployable refuses to start. */
async function refusal(start: Promise<{ kill(): Promise<void> }>): Promise<string> {
  const error = await start.then(
    async (running) => {
      await running.kill();
      return new Error('it started');
    },
    (reason: unknown) => reason as Error,
  );
  return error.message;
}

describe('a deployable that cannot work does not start, and says why in one sentence', () => {
  test.each<[string, Parameters<typeof startFunction>[0], Record<string, string>, RegExp]>([
    ['a missing project', 'dedup', { CONSUMER: 'c', SINK: 'topic:t-out' }, /GOOGLE_CLOUD_PROJECT is not set/],
    ['a missing consumer', 'dedup', { ...project, SINK: 'topic:t-out' }, /CONSUMER is not set/],
    ['a missing sink', 'fifo', { ...project, CONSUMER: 'c' }, /SINK is not set/],
    [
      'an unknown store',
      'dedup',
      { ...project, CONSUMER: 'c', SINK: 'topic:t-out', STORE: 'mongo' },
      /STORE is "mongo"; it must be one of firestore, redis/,
    ],
    ['Redis without its URL', 'dedup', { ...project, CONSUMER: 'c', SINK: 'topic:t-out', STORE: 'redis' }, /REDIS_URL is not set/],
    ['an unknown sink', 'dedup', { ...project, CONSUMER: 'c', SINK: 'ftp://x', DEDUP_MODE: 'off' }, /SINK is "ftp:\/\/x"/],
    ['plain http to another host', 'dedup', { ...project, CONSUMER: 'c', SINK: 'http://example.com/', DEDUP_MODE: 'off' }, /loopback only/],
    [
      'a module that is not there',
      'dedup',
      { ...project, CONSUMER: 'c', SINK: 'module:./none.js', DEDUP_MODE: 'off' },
      /none\.js, which is not/,
    ],
    [
      'a lease that is no number',
      'dedup',
      { ...project, CONSUMER: 'c', SINK: 'topic:t-out', DEDUP_LEASE_MS: '1m' },
      /DEDUP_LEASE_MS is "1m"; it must be a whole number from 100 to 3600000/,
    ],
    ['a lease out of range', 'fifo', { ...project, CONSUMER: 'c', SINK: 'topic:t-out', FIFO_LEASE_MS: '99' }, /FIFO_LEASE_MS is "99"/],
    ['a queue that is none', 'delay', { ...delay, TASK_QUEUES: 'q' }, /TASK_QUEUES is "q"/],
    [
      'a release by plain http',
      'delay',
      { ...delay, ...account, RELEASE_URL: 'http://example.com' },
      /RELEASE_URL is "http:\/\/example\.com"/,
    ],
    [
      'a release without its account',
      'delay',
      { ...delay, RELEASE_URL: 'https://h' },
      /RELEASE_ACCOUNT is not set; RELEASE_URL=https:\/\/h/,
    ],
    ['a hold out of range', 'delay', { ...delay, DELAY_HOLD_MS: '5001' }, /DELAY_HOLD_MS is "5001"; it must be .* from 0 to 5000/],
    ['a release lease out of range', 'delay', { ...delay, DELAY_LEASE_MS: '19999' }, /DELAY_LEASE_MS is "19999"; .* from 20000 to 600000/],
  ])('%s', async (_, name, env, expected) => {
    const message = await refusal(startFunction(name, env));
    expect(message).toMatch(expected);
    expect(message).toMatch(/ended with 1/);
  });

  test.each<[string, Record<string, string>, RegExp]>([
    ['its final topic', { ...project, TASK_QUEUES: queue }, /FINAL_TOPIC is not set/],
    ['the account of its URL', { ...delay, RELEASE_URL: 'https://h' }, /RELEASE_ACCOUNT is not set; RELEASE_URL=https:\/\/h/],
    ['a lease within its range', { ...delay, DELAY_LEASE_MS: '600001' }, /DELAY_LEASE_MS is "600001"; .* from 20000 to 600000/],
  ])('App Engine without %s', async (_, env, expected) => {
    expect(await refusal(startAppEngine(env))).toMatch(expected);
  });

  test('a Firestore that does not answer', async () => {
    const closed = `127.0.0.1:${await freePort()}`;
    const message = await refusal(
      startFunction('dedup', { ...project, CONSUMER: 'c', SINK: 'topic:t-out', FIRESTORE_EMULATOR_HOST: closed }),
    );
    expect(message).toMatch(/ended with 1: dedup does not start: Firestore cannot be reached/);
  });

  test('a Redis that does not answer, without telling the password', async () => {
    const url = `redis://user:hunter2@127.0.0.1:${await freePort()}`;
    const message = await refusal(
      startFunction('dedup', { ...project, CONSUMER: 'c', SINK: 'topic:t-out', STORE: 'redis', REDIS_URL: url }),
    );
    expect(message).toMatch(/Redis cannot be reached/);
    expect(message).not.toMatch(/hunter2/);
  });

  test('a function that there is not', async () => {
    expect(await refusal(startFunction('relay' as 'fifo', project))).toMatch(
      /FUNCTION_TARGET is "relay"; it must be one of dedup, delay, fifo/,
    );
  });
});
