import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { memoryFifoStore } from '../../src/shared/adapters/memory-fifo.ts';
import { createFifoCommands, type FifoCommandParts } from '../../src/shared/fifo/commands.ts';
import type { Cursor } from '../../src/shared/fifo/cursor.ts';
import { createFifo, type FifoParts } from '../../src/shared/fifo/fifo.ts';
import type { FifoStore, Parked } from '../../src/shared/fifo/store.ts';
import type { Message } from '../../src/shared/message.ts';
import type { Handler, RecordStore } from '../../src/shared/ports.ts';
import type { Verdict } from '../../src/shared/verdict.ts';
import { keptDeadLetters, silentLog, testMessage } from '../../src/testing/doubles.ts';
import { keptMeter } from './dedup-workers.ts';
import { silentStore } from './faulty-store.ts';
import { manualSystem } from './manual-system.ts';

export const leaseMs = 3_000;

/** Number n of stream `s`, epoch 100, under key `k<n>`. */
export const numbered = (sequence: number, attributes: Record<string, string> = {}): Message =>
  testMessage({
    messageId: `m${sequence}`,
    attributes: { 'ptk-stream': 's', 'ptk-seq': `${sequence}`, 'ptk-epoch': '100', 'ptk-key': `k${sequence}`, ...attributes },
  });

export const context = () => ({ signal: new AbortController().signal });

/** The number of each run; `answers` are what its runs do, in their order, before it just returns. */
export function recording(...answers: (Error | Verdict)[]): Handler & { readonly runs: number[] } {
  const runs: number[] = [];
  const handle = async ({ attributes }: Message) => {
    runs.push(Number(attributes['ptk-seq']));
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return Object.assign(handle, { runs });
}

type ProcessParts = Partial<Omit<FifoParts, 'store'>> & {
  readonly store?: RecordStore<Cursor>;
  /** What happens to what is to be parked, where it is not just parked. */
  readonly park?: FifoStore['park'];
  /** What a look at a place finds, where it is not what is there. */
  readonly look?: (...args: Parameters<FifoStore['look']>) => ReturnType<FifoStore['look']> | undefined;
  /** Nothing of it reaches a store after its first claim. */
  readonly dies?: boolean;
};

/** A process that is killed once its claim has landed: nothing more of it reaches the store. */
export function dying(records: RecordStore<Cursor>): RecordStore<Cursor> {
  const silent = silentStore<Cursor>();
  let claims = 0;
  return { get: records.get, put: (...args) => (++claims === 1 ? records.put(...args) : silent.put(...args)) };
}

/** A store that parks as it is told to, alone and beside the cursor. */
function refusing(store: FifoStore, park = store.park): FifoStore {
  const beside: FifoStore['beside'] = (change) => ({
    ...store.beside(change),
    async put(...args) {
      if (change.park && park !== store.park) await park(change.park);
      return store.beside(change).put(...args);
    },
  });
  return { ...store, park, beside };
}

/** One store of cursors, one park and any number of processes, each with a memory of its own; `early` messages are given back unless said. */
export function fifoProcesses(early: FifoParts['early'] = 'nack') {
  const system = manualSystem();
  const records = memoryRecordStore<Cursor>(system.clock);
  const deadLetters = keptDeadLetters();
  const park = new Map<string, Parked>();
  const meter = keptMeter();
  const logged: { level: string; text: string; fields: object }[] = [];
  const log = { ...silentLog, error: (fields: object, text: string) => void logged.push({ level: 'error', text, fields }) };
  const process = ({ options, store = records, park: ownPark, look, dies = false, ...parts }: ProcessParts = {}) => {
    const base = refusing(memoryFifoStore(system.clock, dies ? dying(store) : store, park), ownPark);
    return createFifo({
      consumer: 'c',
      store: { ...base, look: (...args) => look?.(...args) ?? base.look(...args) },
      system,
      log,
      meter,
      early,
      deadLetters,
      options: { leaseMs, storeTimeoutMs: 1_000, ...options },
      ...parts,
    });
  };
  const cursor = async () => (await records.get('c~s'))?.record;
  const store = memoryFifoStore(system.clock, records, park);
  const commands = (parts: Partial<FifoCommandParts> = {}) =>
    createFifoCommands({ consumer: 'c', store, system, log, deadLetters, ...parts });
  const parked = () => [...park.values()].map(({ seq }) => seq).sort((a, b) => a - b);
  return { system, records, store, deadLetters, process, cursor, commands, parked, meter, logged };
}
