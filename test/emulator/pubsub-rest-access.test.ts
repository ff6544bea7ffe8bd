import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { createIdentity } from '../../src/emulator/oidc.ts';
import { manualTime } from '../../src/emulator/time.ts';
import { textsOf, worker } from './pubsub-raw.ts';
import { embeddedPubsub, withRawPubsub } from './pubsub-targets.ts';
import { askRest, json, publishPath, refusal } from './rest-publish.ts';

const time = manualTime();
const identity = createIdentity(time);
const { faults, stop, target } = await embeddedPubsub(time, { identity });
afterAll(stop);
beforeEach(() => faults.replace([]));

const body = { messages: [{ data: 'YQ==' }] };
const email = 'publisher@ptk.iam.gserviceaccount.com';
const cloud = 'https://www.googleapis.com/auth/cloud-platform';
const pubsub = 'https://www.googleapis.com/auth/pubsub';
const storage = 'https://www.googleapis.com/auth/devstorage.full_control';

/** What a publish is answered with this Authorization, and what the subscription then has. */
async function published(authorization: string) {
  let outcome: object = {};
  await withRawPubsub(target, async (raw) => {
    const { topic, subscription } = await worker(raw);
    const { status, body: answer } = await askRest(target, publishPath(topic), body, { headers: { ...json, authorization } });
    outcome = { status, answer, texts: textsOf(await raw.pull(subscription)) };
  })();
  return outcome;
}

describe('Pub/Sub over REST, access tokens', () => {
  test.each([cloud, pubsub, `${storage} ${pubsub}`])('one of the scope %s publishes', async (scope) => {
    const token = identity.accessToken({ email, scope });
    expect(await published(`Bearer ${token}`)).toMatchObject({ status: 200, texts: ['a'] });
  });

  test.each([storage, `${pubsub}.readonly`, ''])('one of the scope "%s" may not', async (scope) => {
    const token = identity.accessToken({ email, scope });
    const message = `the access token has the scope "${scope}"; it needs ${cloud} or ${pubsub}`;
    const { status, body: answer } = refusal(403, 'PERMISSION_DENIED', message);
    expect(await published(`Bearer ${token}`)).toEqual({ status, answer, texts: [] });
  });

  test('one publishes for an hour, and then no more', async () => {
    const authorization = `Bearer ${identity.accessToken({ email, scope: cloud })}`;
    await time.advance(3_599_999);
    expect(await published(authorization)).toMatchObject({ status: 200, texts: ['a'] });
    await time.advance(1);
    const { status, body: answer } = refusal(401, 'UNAUTHENTICATED', expect.stringContaining('no access token of this emulator'));
    expect(await published(authorization)).toEqual({ status, answer, texts: [] });
  });

  test('an OIDC token, one of another emulator, one that was changed and none at all are no access tokens', async () => {
    const grant = { email, scope: cloud };
    const token = identity.accessToken(grant);
    const changed = `${token.slice(0, -1)}${token.endsWith('A') ? 'Q' : 'A'}`;
    const authorizations = [
      `Bearer ${await identity.token({ email, audience: `http://${target.address}/` })}`,
      `Bearer ${createIdentity(time).accessToken(grant)}`,
      `Bearer ${changed}`,
      `Bearer ya29.`,
      'Bearer ',
      `Basic ${token}`,
      token,
    ];
    for (const authorization of authorizations) expect(await published(authorization)).toMatchObject({ status: 401, texts: [] });
    expect(await published(`bearer ${token}`)).toMatchObject({ status: 200 });
  });

  test('a token tells its emulator for whom it speaks, and nobody else', () => {
    const token = identity.accessToken({ email, scope: cloud });
    expect(identity.accessOf(token)).toEqual({ email, scope: cloud });
    expect(token).toMatch(/^ya29\.[\w-]+$/);
    expect(createIdentity(time).accessOf(token)).toBeUndefined();
  });
});

describe('Pub/Sub over REST, faults', () => {
  test.each([
    { kind: 'fail-before', texts: [], says: 'was not applied' },
    { kind: 'answer-lost', texts: ['a'], says: 'the answer of Publisher.Publish was lost' },
  ] as const)('after $kind the answer is 503, and the subscription has $texts', async ({ kind, texts, says }) => {
    await withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      faults.add({ kind, rpc: 'Publisher.Publish', resource: topic, times: 1 });
      expect(await askRest(target, publishPath(topic), body)).toEqual(refusal(503, 'UNAVAILABLE', expect.stringContaining(says)));
      expect(textsOf(await raw.pull(subscription))).toEqual(texts);
      expect(await askRest(target, publishPath(topic), body)).toMatchObject({ status: 200 });
    })();
  });

  test('a message is delivered twice', async () => {
    await withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      faults.add({ kind: 'duplicate', times: 1 });
      await askRest(target, publishPath(topic), body);
      expect(textsOf(await raw.pull(subscription))).toEqual(['a', 'a']);
    })();
  });

  test('a slow call is applied after delayMs and not before', async () => {
    await withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      faults.add({ kind: 'slow-call', rpc: 'Publisher.Publish', delayMs: 1_000, times: 1 });
      const answer = askRest(target, publishPath(topic), body);
      await expect.poll(() => faults.counts()['slow-call']).toBeGreaterThan(0);
      await time.advance(999);
      expect(await raw.pull(subscription)).toEqual([]);
      await time.advance(1);
      expect(await answer).toMatchObject({ status: 200 });
      expect(textsOf(await raw.pull(subscription))).toEqual(['a']);
    })();
  });
});
