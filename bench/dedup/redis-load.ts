import { createClient } from 'redis';
import { redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { dedupOptions } from '../../src/shared/dedup/options.ts';
import type { Message } from '../../src/shared/message.ts';
import { startRedisServer } from '../../test/support/redis-server.ts';
import { type Measure, passesPerSecond } from '../measure/rounds.ts';
import { consumerOn, deliver, lanes, nextMessage } from './consumer.ts';
import { powertoolsOn } from './powertools.ts';
import { type Call, recorded, sent } from './recorded-calls.ts';

type Side = 'powertools' | 'floor' | 'ours';

export type RedisLoad = {
  /** Messages a second that are new to the store. */
  readonly first: Readonly<Record<Side, Measure>>;
  /** Messages a second that the store has as done. */
  readonly duplicate: Readonly<Record<Side, Measure>>;
  /** What the client sent for one message. */
  readonly roundTrips: { readonly first: number; readonly duplicate: number };
  close(): Promise<void>;
};

/** A message, and what it sends on its first delivery. */
type Item = { readonly message: Message; readonly calls: readonly Call[] };
type Handled = (item: Item) => Promise<unknown>;

const prefix = 'ptk:dedup:';
const messageCount = 10_000;
/** The `redis` package sets a timer for every command, which fires 5 s later: so each side pays for its own and for no other's. */
const steady = { settleMs: 5_500, measuredMs: 2_500 };
const onePass = { settleMs: 0, measuredMs: 1 };

/**
 * A Redis of its own, and for each side a client of its own. The bare side's is without that timer, as our adapter sends without it.
 *
 * @param timed whether the other two get a client as it comes, or one without the timer too
 */
export async function openRedisLoad({
  timed,
  times = steady,
}: {
  readonly timed: boolean;
  readonly times?: typeof steady;
}): Promise<RedisLoad> {
  const server = await startRedisServer();
  const open = (timer: boolean) => createClient({ url: server.url, ...(!timer && { commandOptions: { timeout: 0 } }) }).connect();
  const [client, bareClient, powertoolsClient] = await Promise.all([open(timed), open(false), open(timed)]);
  const flush = () => bareClient.flushAll();

  const consumer = consumerOn(redisRecordStore(client, prefix));
  const powertools = powertoolsOn(powertoolsClient, dedupOptions.ttlSeconds.default);
  // Its scripts are known to the server from here on.
  await deliver(consumer, nextMessage(), 'processed');
  const seen = recorded(client);
  const seenConsumer = consumerOn(redisRecordStore(seen.client, prefix));
  const callsOf = async (message: Message, expected: 'processed' | 'duplicate') => {
    await deliver(seenConsumer, message, expected);
    return seen.taken();
  };
  const items: Item[] = [];
  while (items.length < messageCount) {
    const message = nextMessage();
    items.push({ message, calls: await callsOf(message, 'processed') });
  }
  const [item = { message: nextMessage(), calls: [] }] = items;
  const roundTrips = { first: item.calls.length, duplicate: (await callsOf(item.message, 'duplicate')).length };

  const byPowertools: Handled = ({ message }) => powertools(message.messageId);
  const sides: Readonly<Record<Side, { readonly first: Handled; readonly again: Handled }>> = {
    powertools: { first: byPowertools, again: byPowertools },
    floor: {
      first: async ({ calls }) => {
        for (const call of calls) await sent(bareClient, call);
      },
      again: async ({ calls: [claim] }) => claim && sent(bareClient, claim),
    },
    ours: {
      first: ({ message }) => deliver(consumer, message, 'processed'),
      again: ({ message }) => deliver(consumer, message, 'duplicate'),
    },
  };
  const first = (side: Side) => () => passesPerSecond({ lanes, items, before: flush, once: sides[side].first, ...times });
  const duplicate = (side: Side) => async () => {
    await passesPerSecond({ lanes, items, before: flush, once: sides[side].first, ...onePass });
    return passesPerSecond({ lanes, items, once: sides[side].again, ...times });
  };
  return {
    first: { powertools: first('powertools'), floor: first('floor'), ours: first('ours') },
    duplicate: { powertools: duplicate('powertools'), floor: duplicate('floor'), ours: duplicate('ours') },
    roundTrips,
    async close() {
      for (const each of [client, bareClient, powertoolsClient]) each.destroy();
      await server.kill();
    },
  };
}
