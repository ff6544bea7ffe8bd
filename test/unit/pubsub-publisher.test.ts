import type { PubSub } from '@google-cloud/pubsub';
import { expect, test } from 'vitest';
import { pubsubPublisher } from '../../src/shared/adapters/pubsub.ts';

type Config = {
  readonly reqOpts: { readonly topic: string; readonly messages: readonly { readonly data: unknown; readonly attributes: object }[] };
};

test('a body is given to the client as a Buffer of the same bytes, whatever array it is and wherever it begins', async () => {
  const requests: Config['reqOpts'][] = [];
  const pubsub = {
    projectId: 'p',
    request({ reqOpts }: Config, done: (error: null, response: object) => void) {
      requests.push(reqOpts);
      done(null, { messageIds: ['1', '2', '3'] });
    },
  } as unknown as PubSub;
  const bodies = [Buffer.from([1, 2]), new Uint8Array([3, 4]), new Uint8Array([5, 6, 7, 8]).subarray(1, 3)];
  const messages = bodies.map((data) => ({ data, attributes: { a: '1' }, orderingKey: 'o' }));
  expect(await pubsubPublisher(pubsub).publish('t', messages)).toEqual(['1', '2', '3']);
  const sent = [
    [1, 2],
    [3, 4],
    [6, 7],
  ].map((bytes) => ({ data: Buffer.from(bytes), attributes: { a: '1' }, orderingKey: 'o' }));
  expect(requests).toEqual([{ topic: 'projects/p/topics/t', messages: sent }]);
  expect(requests[0]?.messages.map(({ data }) => Buffer.isBuffer(data))).toEqual([true, true, true]);
});
