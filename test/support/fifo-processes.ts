import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import type { Cursor } from '../../src/shared/fifo/decide.ts';
import { createFifo, type FifoParts } from '../../src/shared/fifo/fifo.ts';
import type { Message } from '../../src/shared/message.ts';
import type { Handler } from '../../src/shared/ports.ts';
import type { Verdict } from '../../src/shared/verdict.ts';
import { keptDeadLetters, silentLog, testMessage } from '../../src/testing/doubles.ts';
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

/** One store of cursors and any number of processes, each with a memory of its own. */
export function fifoProcesses() {
  const system = manualSystem();
  const records = memoryRecordStore<Cursor>(system.clock);
  const deadLetters = keptDeadLetters();
  const process = ({ options, ...parts }: Partial<FifoParts> = {}) =>
    createFifo({
      consumer: 'c',
      store: records,
      system,
      log: silentLog,
      deadLetters,
      options: { leaseMs, storeTimeoutMs: 1_000, ...options },
      ...parts,
    });
  const cursor = async () => (await records.get('c~s'))?.record;
  return { system, records, deadLetters, process, cursor };
}
