import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { OAuth2Client } from 'google-auth-library';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startEmulator } from '../../src/emulator/server.ts';
import { statement, type Target } from '../support/targets.ts';
import { type PushEndpoint, pushEndpoint } from './pubsub-endpoint.ts';
import { type RawPubsub, rawPubsub } from './pubsub-raw.ts';
import { codeOf } from './pubsub-targets.ts';

/** Google's emulator is not asked: it sends pushes without a token. */
const emulator = await startEmulator();
const { identity } = emulator;
const target: Target = { name: 'embedded', address: emulator.pubsub.address };
afterAll(emulator.close);

const serviceAccountEmail = 'pusher@ptk.iam.gserviceaccount.com';
let endpoint: PushEndpoint;
let raw: RawPubsub;
let project = 0;
beforeEach(async () => {
  endpoint = await pushEndpoint(204);
  raw = rawPubsub(target, `token-${project++}`);
});
afterEach(() => {
  endpoint.close();
  raw.close();
});

async function push(settings: object, message: object = { data: Buffer.from('a') }, more: object = {}) {
  const topic = await raw.createTopic('orders');
  const subscription = await raw.createSubscription('pusher', topic, { pushConfig: { pushEndpoint: endpoint.url, ...settings }, ...more });
  const { messageIds } = await raw.call('Publish', { topic, messages: [message] });
  await expect.poll(() => endpoint.requests.length).toBe(1);
  const [request] = endpoint.requests;
  return { headers: request?.headers ?? {}, body: request?.body ?? Buffer.of(), messageIds, subscription };
}

/** What Google's own library makes of the token, with the keys as the emulator serves them. */
async function verified(authorization: string | undefined, audience: string) {
  const answer = await fetch(`http://${target.address}/oauth2/v3/certs`);
  const { keys } = (await answer.json()) as { readonly keys: readonly object[] };
  const keyOf = (key: object) => createPublicKey({ key: key as JsonWebKey, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  const certificates = Object.fromEntries(keys.map((key) => [(key as { kid: string }).kid, String(keyOf(key))]));
  const token = authorization?.replace(/^Bearer /, '') ?? '';
  return new OAuth2Client().verifySignedJwtWithCertsAsync(token, certificates, audience, ['https://accounts.google.com']);
}

describe('Pub/Sub push tokens', () => {
  statement(target, 54, 'the token of a push verifies for its endpoint, and names the service account', async () => {
    const { headers } = await push({ oidcToken: { serviceAccountEmail } });
    const payload = (await verified(headers.authorization, endpoint.url)).getPayload();
    expect(payload).toMatchObject({ email: serviceAccountEmail, email_verified: true, sub: expect.stringMatching(/^\d{21}$/) });
    expect((payload?.exp ?? 0) - (payload?.iat ?? 0)).toBe(3_600);
  });

  statement(target, 54, 'a token is for the audience that the subscription names, and for no other', async () => {
    const { headers } = await push({ oidcToken: { serviceAccountEmail, audience: 'the-handler' } });
    expect((await verified(headers.authorization, 'the-handler')).getPayload()?.aud).toBe('the-handler');
    await expect(verified(headers.authorization, endpoint.url)).rejects.toThrow('audience');
  });

  statement(target, 54, 'a token that was changed does not verify', async () => {
    const token = await identity.token({ audience: endpoint.url, email: serviceAccountEmail });
    const [header, payload, signature] = token.split('.');
    const forged = Buffer.from(String(Buffer.from(payload ?? '', 'base64url')).replace('pusher@', 'admin@')).toString('base64url');
    await expect(verified(`${header}.${forged}.${signature}`, endpoint.url)).rejects.toThrow('signature');
  });

  test('a push without a token has no authorization', async () => {
    const { headers } = await push({});
    expect(headers.authorization).toBeUndefined();
  });

  test('a token for nobody is refused', async () => {
    const pushConfig = { pushEndpoint: endpoint.url, oidcToken: {} };
    expect(await codeOf(raw.createSubscription('pusher', await raw.createTopic('orders'), { pushConfig }))).toBe('INVALID_ARGUMENT');
  });
});

describe('Pub/Sub push without wrapper', () => {
  const data = Buffer.from([0, 1, 255]);
  const message = { data, attributes: { own: 'x', 'no header': 'y', other: 'zeile\n' }, orderingKey: 'k' };

  test('the body is the data, and nothing tells of the rest', async () => {
    const { headers, body } = await push({ noWrapper: {} }, message);
    expect(body).toEqual(data);
    expect(Object.keys(headers).filter((name) => /^x-goog|own/.test(name))).toEqual([]);
  });

  test('with metadata it comes in headers, as far as an attribute can be one', async () => {
    const deadLetterPolicy = { deadLetterTopic: await raw.createTopic('dead') };
    const { headers, body, messageIds, subscription } = await push({ noWrapper: { writeMetadata: true } }, message, { deadLetterPolicy });
    expect(body).toEqual(data);
    expect(headers).toMatchObject({
      own: 'x',
      'x-goog-pubsub-subscription-name': subscription,
      'x-goog-pubsub-message-id': messageIds?.[0],
      'x-goog-pubsub-publish-time': expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      'x-goog-pubsub-ordering-key': 'k',
      'x-goog-pubsub-delivery-attempt': '1',
    });
    expect(headers).not.toHaveProperty('other');
  });
});
