import { ToolkitError } from '../errors.ts';
import type { RedisClient } from './redis.ts';

/** What is needed of a `Redis` or a `Cluster` of `ioredis`, whichever version of it is installed. */
export type IoredisClient = {
  /** `end`: closed for good. Until then it connects by itself. */
  readonly status: string;
  eval(script: string, keys: number, ...keysAndArguments: string[]): Promise<unknown>;
  evalsha(sha1: string, keys: number, ...keysAndArguments: string[]): Promise<unknown>;
};

/**
 * A client of `ioredis` as `redisRecordStore`, `redisDoneCache` and `checkRedis` take it.
 * @throws INVALID_SETTINGS for anything else, and for a client that is closed
 */
export function ioredisClient(client: IoredisClient): RedisClient {
  const { status, evalsha, evalSha } = (client ?? {}) as Readonly<Record<string, unknown>>;
  const given =
    typeof evalSha === 'function'
      ? 'a client of the redis package; pass it to redisRecordStore as it is'
      : typeof evalsha !== 'function' || typeof status !== 'string'
        ? `${client === null ? 'null' : typeof client}`
        : status === 'end' && 'a client that is closed';
  if (given) throw new ToolkitError('INVALID_SETTINGS', `ioredisClient takes a Redis or a Cluster of ioredis, and was given ${given}`);
  return {
    get isOpen() {
      return client.status !== 'end';
    },
    eval: (script, { keys, arguments: args }) => client.eval(script, keys.length, ...keys, ...args),
    evalSha: (sha1, { keys, arguments: args }) => client.evalsha(sha1, keys.length, ...keys, ...args),
  };
}
