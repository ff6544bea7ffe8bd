import { createHash } from 'node:crypto';
import type { DedupRecord } from '../dedup/decide.ts';
import { ToolkitError, textOf } from '../errors.ts';
import type { RecordStore, Revised, Stored } from '../ports.ts';
import type { DoneCache } from './two-tier.ts';

type ScriptArguments = { keys: string[]; arguments: string[] };

/**
 * What the stores need of a client: one of the `redis` package (single, cluster, pool or sentinel) as it is, one of `ioredis` through
 * `ioredisClient`. The caller connects and closes it.
 */
export type RedisClient = Sender & {
  readonly isOpen: boolean;
  readonly isReady?: boolean;
  withCommandOptions?(options: { readonly timeout: number }): Sender;
};
type Sender = {
  eval(script: string, options: ScriptArguments): Promise<unknown>;
  evalSha(sha1: string, options: ScriptArguments): Promise<unknown>;
};

type Script = { readonly text: string; readonly sha1: string };
const script = (text: string): Script => ({ text, sha1: createHash('sha1').update(text).digest('hex') });

/*
 * A value is its version (`rev.runId`), the time to live that it was written with, and the record, each on its own line. Its age is that
 * time less what is left of it (protocol 0.5); where it has none, or it counts from earlier, the line is `@` and an instant of this
 * server. A script answers one string, which every protocol and every client hands on alike: `written`, or this server's clock, with
 * the time left and the value behind it where there is one.
 */
const get = `local v=redis.call('GET',KEYS[1])`;
const now = `local t=redis.call('TIME') local now=t[1]*1000+math.floor(t[2]/1000)`;
const told = `${now} return v and now..' '..redis.call('PTTL',KEYS[1])..'\\n'..v or now..''`;

const getScript = script(`${get}\n${told}`);

/** ARGV: how the stored value must begin ('' where nothing may be stored), the first line of the new one, its last, its time to live. */
const putScript = script(`${get}
local e=ARGV[1]
if v and (e=='' or string.sub(v,1,#e)~=e) or not v and e~='' then ${told} end
if ARGV[4] then redis.call('SET',KEYS[1],ARGV[2]..ARGV[4]..ARGV[3],'PX',ARGV[4])
else ${now} redis.call('SET',KEYS[1],ARGV[2]..'@'..now..ARGV[3]) end
return 'written'`);

/** ARGV: the revision, the first line, the last, the time to live, and the instant from which it counts, if not from now. */
const keepScript = script(`${get}
if v and tonumber(string.match(v,'^%d+'))>=tonumber(ARGV[1]) then ${told} end
${now}
local at=ARGV[5] or now
local left=math.floor(at+ARGV[4]-now)
if left<=0 then ${told} end
redis.call('SET',KEYS[1],ARGV[2]..'@'..at..ARGV[3],'PX',left)
return 'written'`);

const typeScript = script(`return redis.call('TYPE',KEYS[1])`);

const probeScript = script(`local info=redis.pcall('INFO','memory')
local policy=type(info)=='string' and string.match(info,'maxmemory_policy:([%w-]+)') or ''
return redis.call('PTTL',KEYS[1])..' '..policy`);

/**
 * @param prefix of every key, as `ptk:dedup:`
 * @throws INVALID_SETTINGS for anything but a connected client
 */
export function redisRecordStore<R extends Revised>(client: RedisClient, prefix: string): RecordStore<R> {
  const sender = senderOf(client, 'redisRecordStore');
  return {
    get(key) {
      const name = prefix + wireKey(key);
      return run(sender(), getScript, name, [], (reply) => answerOf<R>(name, reply).stored);
    },
    put(key, record, expected, keepMs) {
      const name = prefix + wireKey(key);
      const version = versionOf(record);
      const args = [expected === 'absent' ? '' : `${expected}\n`, `${version}\n`, `\n${jsonOf(record)}`];
      if (keepMs !== 'forever') args.push(String(Math.ceil(keepMs)));
      return run(sender(), putScript, name, args, (reply) =>
        reply === 'written' ? { version } : { conflict: answerOf<R>(name, reply).stored },
      );
    },
  };
}

/**
 * The fast tier of `twoTierRecordStore`.
 * @param prefix of every key, as `ptk:done:`; not one that a record store has
 * @throws INVALID_SETTINGS for anything but a connected client
 */
export function redisDoneCache<R extends DedupRecord = DedupRecord>(client: RedisClient, prefix: string): DoneCache<R> {
  const sender = senderOf(client, 'redisDoneCache');
  return {
    get(key) {
      const name = prefix + wireKey(key);
      return run(sender(), getScript, name, [], (reply) => answerOf<R>(name, reply));
    },
    async keep(key, record, writtenAtMs) {
      const args = [String(record.rev), `${versionOf(record)}\n`, `\n${jsonOf(record)}`, String(record.ttlMs)];
      if (writtenAtMs !== 'now') args.push(String(Math.floor(writtenAtMs)));
      await run(sender(), keepScript, prefix + wireKey(key), args, asText);
    },
  };
}

/**
 * Writes a probe as the record store does, and looks at what the server made of it.
 * @returns the server's `maxmemory-policy`, where it may be read: any but `noeviction` evicts records before their time
 * @throws INVALID_SETTINGS when the probe has no time to live; STORE_UNAVAILABLE
 */
export async function checkRedis(client: RedisClient, prefix: string): Promise<string | undefined> {
  const keepMs = 60_000;
  await redisRecordStore(client, prefix).put('probe', { rev: 1, runId: 'probe' }, 'absent', keepMs);
  const [ttlMs, policy] = (await run(client, probeScript, `${prefix}probe`, [], asText)).split(' ');
  if (!(Number(ttlMs) > 0 && Number(ttlMs) <= keepMs))
    throw new ToolkitError('INVALID_SETTINGS', `Redis keeps ${prefix}probe with a time to live of ${ttlMs} ms; it was asked for ${keepMs}`);
  return policy === '' ? undefined : policy;
}

/** One round trip; a second one when the server does not know the script yet. */
async function run<T>(client: Sender, { text, sha1 }: Script, key: string, args: string[], read: (reply: string) => T): Promise<T> {
  const options = { keys: [key], arguments: args };
  let reply: unknown;
  try {
    reply = await client.evalSha(sha1, options);
  } catch (error) {
    if (!textOf(error).startsWith('NOSCRIPT')) throw await storeError(client, key, error);
    reply = await client.eval(text, options).catch(async (again: unknown) => {
      throw await storeError(client, key, again);
    });
  }
  return read(textOfAnswer(reply));
}

const asText = (reply: string): string => reply;

function textOfAnswer(reply: unknown): string {
  if (typeof reply === 'string') return reply;
  if (reply instanceof Uint8Array) return Buffer.from(reply.buffer, reply.byteOffset, reply.byteLength).toString();
  throw notAnAnswer(reply === null ? 'null' : typeof reply);
}

const notAnAnswer = (given: string): ToolkitError =>
  new ToolkitError('STORE_UNAVAILABLE', `Redis: the client gave ${given} as the answer of a script`);

async function storeError(client: Sender, key: string, error: unknown): Promise<ToolkitError> {
  const message = textOf(error);
  if (!message.includes('WRONGTYPE')) return new ToolkitError('STORE_UNAVAILABLE', `Redis: ${message}`, error);
  const type = await run(client, typeScript, key, [], asText).catch(() => 'value of another type');
  return unreadable(key, `a ${type}`);
}

const unreadable = (key: string, found: string): ToolkitError =>
  new ToolkitError('RECORD_UNREADABLE', `the Redis key ${key} holds ${found} and no record of this toolkit`);

function wireKey(key: string): string {
  const at = key.indexOf('~');
  return at === -1 ? key : `${key.slice(0, at)}:${key.slice(at + 1)}`;
}
const versionOf = (record: Revised): string => `${record.rev}.${record.runId}`;
/** Instants under their names of the wire. In JSON every quote within a text is escaped, so `AtMs":` can only be the end of a name. */
const jsonOf = (record: Revised): string => renamed(JSON.stringify(record), 'AtMs":', 'At":');
const withMs = (json: string): string => renamed(json, 'At":', 'AtMs":');

/** As `replaceAll` where a number follows; a pattern's engine, or a copy of the record, costs more than all else here. */
function renamed(json: string, ending: string, other: string): string {
  let done = '';
  let from = 0;
  for (let at = json.indexOf(ending); at !== -1; at = json.indexOf(ending, at + ending.length)) {
    const next = json.charCodeAt(at + ending.length);
    if (next < 0x30 || next > 0x39) continue;
    done += json.slice(from, at) + other;
    from = at + ending.length;
  }
  return from === 0 ? json : done + json.slice(from);
}

type Answer<R> = { readonly nowMs: number; readonly stored: Stored<R> | undefined };

function answerOf<R extends Revised>(key: string, text: string): Answer<R> {
  const versionAt = text.indexOf('\n') + 1;
  const leftAt = text.indexOf(' ') + 1;
  const nowMs = Number(versionAt === 0 ? text : text.slice(0, leftAt - 1));
  if (!(nowMs > 0)) throw notAnAnswer('another text');
  if (versionAt === 0) return { nowMs, stored: undefined };
  const keptAt = text.indexOf('\n', versionAt) + 1;
  const jsonAt = text.indexOf('\n', keptAt) + 1;
  if (keptAt === 0 || jsonAt === 0) throw unreadable(key, 'another text');
  const version = text.slice(versionAt, keptAt - 1);
  const record = fieldsOf(key, withMs(text.slice(jsonAt))) as R;
  const writtenAtMs = writtenAtMsOf(text.slice(keptAt, jsonAt - 1), Number(text.slice(leftAt, versionAt - 1)), nowMs);
  if (versionOf(record) !== version || !Number.isInteger(record.rev)) throw unreadable(key, 'a text of another form');
  if (!Number.isInteger(writtenAtMs)) throw unreadable(key, 'a value whose age cannot be told');
  return { nowMs, stored: { record, version, writtenAtMs, nowMs } };
}

/** NaN where somebody took the value's time to live away: its age is told by what is left of it. */
function writtenAtMsOf(kept: string, leftMs: number, nowMs: number): number {
  if (kept.startsWith('@')) return Number(kept.slice(1));
  return leftMs < 0 ? Number.NaN : nowMs - (Number(kept) - leftMs);
}

function fieldsOf(key: string, json: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw unreadable(key, 'another text');
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Readonly<Record<string, unknown>>;
  throw unreadable(key, Array.isArray(value) ? 'an array' : 'JSON of another shape');
}

/**
 * What to send by, asked for each command. For every command the `redis` package sets a timer that ends only one which still waits for a
 * connection, and that costs as much as the rest of it: where there is a connection it is left out. Where there is none it is needed, or
 * a claim would land long after its delivery was given back.
 *
 * The wrong client would be found at the first message, or never: some ignore options that they do not know.
 */
function senderOf(client: RedisClient, taker: string): () => Sender {
  const fault = clientFault(client);
  if (fault) throw new ToolkitError('INVALID_SETTINGS', `${taker} takes a connected client of the redis package, and was given ${fault}`);
  const untimed = client.withCommandOptions?.({ timeout: 0 }) ?? client;
  return () => (client.isReady ? untimed : client);
}

function clientFault(client: unknown): string | undefined {
  const { isOpen, evalSha, evalsha, then } = (client ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof then === 'function') return 'a promise; await it';
  if (typeof evalSha === 'function' && typeof isOpen === 'boolean')
    return isOpen ? undefined : 'one that is not connected; await its connect()';
  if (typeof evalsha === 'function') return 'a client of ioredis; pass ioredisClient(client) of pubsub-toolkit/ioredis';
  return client === null ? 'null' : typeof client;
}
