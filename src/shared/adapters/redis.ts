import { ToolkitError } from '../errors.ts';
import type { RecordStore, Revised, Stored } from '../ports.ts';
import { fromWire, toWire } from '../wire.ts';

/** What the store needs of a connected client of the `redis` package; the caller opens and closes it. */
export type RedisClient = {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
};

/**
 * A value is `rev.runId`, the instant of its write by this server's clock, and the record, each on its own line. The script
 * compares the first, so one round trip is enough for a claim and for a duplicate alike.
 */
const putScript = `
local time = redis.call('TIME')
local value = redis.call('GET', KEYS[1])
local version = value and string.match(value, '^[^\\n]*') or 'absent'
if version ~= ARGV[1] then return {value, time} end
local written = ARGV[2] .. '\\n' .. (time[1] * 1000 + math.floor(time[2] / 1000)) .. '\\n' .. ARGV[3]
if ARGV[4] == 'forever' then redis.call('SET', KEYS[1], written) else redis.call('SET', KEYS[1], written, 'PX', ARGV[4]) end
return 'written'`;

const getScript = `return {redis.call('GET', KEYS[1]), redis.call('TIME')}`;

/**
 * @param prefix of every key, as `ptk:dedup:`
 */
export function redisRecordStore<R extends Revised>(client: RedisClient, prefix: string): RecordStore<R> {
  const run = async (script: string, key: string, ...args: string[]) => {
    try {
      return await client.eval(script, { keys: [prefix + key.replace('~', ':')], arguments: args });
    } catch (error) {
      throw new ToolkitError('STORE_UNAVAILABLE', `Redis: ${error instanceof Error ? error.message : String(error)}`, error);
    }
  };
  return {
    get: async (key) => decode<R>(await run(getScript, key)),
    put: async (key, record, expected, keepMs) => {
      const version = versionOf(record);
      const json = JSON.stringify(toWire(record, (atMs) => atMs));
      const reply = await run(putScript, key, expected, version, json, keepMs === 'forever' ? keepMs : String(Math.ceil(keepMs)));
      return reply === 'written' ? { version } : { conflict: decode<R>(reply) };
    },
  };
}

const versionOf = (record: Revised): string => `${record.rev}.${record.runId}`;

function decode<R extends Revised>(reply: unknown): Stored<R> | undefined {
  const [value, [seconds, micros]] = reply as [string | null, [string, string]];
  if (value === null) return undefined;
  const [version = '', writtenAtMs = '', ...json] = value.split('\n');
  const record = fromWire<R>(JSON.parse(json.join('\n')), (instant) => (typeof instant === 'number' ? instant : undefined));
  return { record, version, writtenAtMs: Number(writtenAtMs), nowMs: Number(seconds) * 1000 + Math.floor(Number(micros) / 1000) };
}
