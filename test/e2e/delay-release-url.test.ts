import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../src/cli/demo/processes.ts';
import { createIdentity } from '../../src/emulator/oidc.ts';
import { type Emulator, startEmulator } from '../../src/emulator/server.ts';
import { realTime } from '../../src/emulator/time.ts';
import { cloudTasksClient } from '../../src/shared/adapters/cloud-tasks.ts';
import { type Deployed, post, startAppEngine, startFunction } from '../support/deployables.ts';
import { type Inbox, listenTo } from '../support/received.ts';

const projectId = 'ptk-release-url';
const queue = `projects/${projectId}/locations/local/queues/q`;
const account = `tasks@${projectId}.iam.gserviceaccount.com`;
let emulator: Emulator;
let pubsub: PubSub;
let delay: Deployed;
let release: Deployed;
let url: string;
let final: Inbox;
/** How far the clock is behind that dates the tokens. */
let behindMs = 0;

beforeAll(async () => {
  const time = realTime();
  // No `appEngineUrl`: a task that went to App Engine would never arrive.
  emulator = await startEmulator({ time: { ...time, nowMs: () => time.nowMs() - behindMs } });
  const port = String(await freePort());
  url = `http://127.0.0.1:${port}`;
  const env = { ...emulator.env, GOOGLE_CLOUD_PROJECT: projectId, FINAL_TOPIC: 'final', TASK_QUEUES: queue, DELAY_HOLD_MS: '0' };
  const byUrl = { ...env, RELEASE_URL: url, RELEASE_ACCOUNT: account };
  [delay, release] = await Promise.all([startFunction('delay', byUrl), startAppEngine({ ...byUrl, PORT: port })]);
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
  await Promise.all([pubsub.createTopic('source'), pubsub.createTopic('final')]);
  final = await listenTo(pubsub, 'final');
  await pubsub.topic('source').createSubscription('source', { pushConfig: { pushEndpoint: delay.url } });
  const tasks = cloudTasksClient(projectId, emulator.tasks.address);
  await tasks.createQueue({ parent: queue.slice(0, queue.indexOf('/queues/')), queue: { name: queue } });
  await tasks.close();
});

afterAll(async () => {
  await Promise.all([delay.kill(), release.kill(), final.close()]);
  await pubsub.close();
  await emulator.close();
});

const body = JSON.stringify({
  v: 1,
  source: 's',
  key: 'k',
  instruction: 'after 1',
  hop: 1,
  dueAtMs: 1,
  scheduledForMs: 1,
  message: { data: 'eA==', attributes: {} },
});
const call = (headers: Record<string, string>) => post(`${url}/tasks/release`, undefined, { raw: body, headers });
const byTask = { 'x-cloudtasks-queuename': 'q', 'x-cloudtasks-taskname': 't' };
const claims = () => ({ audience: url, email: account });
const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');

/** The token with other claims, under the signature that it has. */
async function changed(more: object): Promise<string> {
  const [header, payload = '', signature] = (await emulator.identity.token(claims())).split('.');
  const claimed = JSON.parse(Buffer.from(payload, 'base64url').toString());
  return [header, encoded({ ...claimed, ...more }), signature].join('.');
}

/** Made so long ago. */
async function old(agoMs: number): Promise<string> {
  behindMs = agoMs;
  return emulator.identity.token(claims()).finally(() => {
    behindMs = 0;
  });
}

/** Names no algorithm, and is not signed. */
async function unsigned(): Promise<string> {
  const [, payload] = (await emulator.identity.token(claims())).split('.');
  return `${encoded({ alg: 'none', typ: 'JWT' })}.${payload}.`;
}

describe('a release that tasks call by its URL', () => {
  test('publishes what a task brings with its token, when it is due and not before', async () => {
    const dueAtMs = Date.now() + 700;
    const attributes = { 'ptk-deliver-at': new Date(dueAtMs).toISOString(), 'ptk-key': 'k1' };
    await pubsub.topic('source').publishMessage({ data: Buffer.from('a'), attributes });
    await expect.poll(() => emulator.tasks.pending().map((task) => task.url)).toEqual([`${url}/tasks/release`]);
    const [released] = await final.count(1);
    expect(released?.received).toBeGreaterThanOrEqual(dueAtMs);
    expect(released).toMatchObject({ data: Buffer.from('a'), attributes: { 'ptk-key': 'k1', 'ptk-delay-count': '1' } });
    await expect.poll(() => emulator.tasks.pending()).toEqual([]);
  });

  test.each<[string, () => Promise<string> | undefined, string, RegExp?]>([
    ['no token', () => undefined, 'header'],
    ['a token that is none', async () => 'x', 'token', /segments/],
    ['a token for another audience', () => emulator.identity.token({ ...claims(), audience: 'https://other' }), 'token', /audience/],
    [
      'a token of another account',
      () => emulator.identity.token({ ...claims(), email: 'other@x.y' }),
      'token',
      /^the token is of other@x\.y, and must/,
    ],
    ['a token that another key signed', () => createIdentity(realTime()).token(claims()), 'token', /No pem found/],
    ['a token that was changed', () => changed({ sub: '1' }), 'token', /signature/],
    ['a token of another issuer', () => changed({ iss: 'https://example.com' }), 'token', /signature/],
    ['a token that is over', () => old(65 * 60_000 + 1_000), 'token', /too late/],
    ['a token without a signature', unsigned, 'token', /No pem found|signature/],
  ])('takes no call with %s: 403, a reason in the log, and nothing is published', async (_, tokenOf, reason, detail) => {
    const [before, published] = [release.log.length, final.messages.length];
    const token = await tokenOf();
    expect(await call({ ...byTask, ...(token !== undefined && { authorization: `Bearer ${token}` }) })).toBe(403);
    const lines = () => release.log.slice(before).map(({ severity, message, reason }) => [severity, message, reason]);
    const refused = ['WARNING', 'call refused: no task of our queues', reason];
    await expect.poll(lines).toEqual([...(detail ? [['WARNING', 'token refused', expect.stringMatching(detail)]] : []), refused]);
    expect(final.messages.length).toBe(published);
  });

  test('takes no call in the name of App Engine, whose headers nobody strips here', async () => {
    const token = await emulator.identity.token(claims());
    const appEngine = { 'x-appengine-queuename': 'q', 'x-appengine-taskname': 't' };
    expect([await call(appEngine), await call({ ...appEngine, authorization: `Bearer ${token}` })]).toEqual([403, 403]);
  });

  test('takes no call of another queue', async () => {
    const token = await emulator.identity.token(claims());
    expect(await call({ ...byTask, 'x-cloudtasks-queuename': 'r', authorization: `Bearer ${token}` })).toBe(403);
  });

  test('publishes once for the very same call with its token, made as late as its clock may be wrong', async () => {
    const before = final.messages.length;
    const authorization = `Bearer ${await old(64 * 60_000)}`;
    expect([await call({ ...byTask, authorization }), await call({ ...byTask, authorization })]).toEqual([200, 200]);
    await final.count(before + 1);
    await expect.poll(() => emulator.pubsub.backlog()).toBe(0);
    expect(final.messages.slice(before).map(({ data }) => data.toString())).toEqual(['x']);
  });
});
