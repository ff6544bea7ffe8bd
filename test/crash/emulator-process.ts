import { fileURLToPath } from 'node:url';
import type { Addresses } from '../../bench/emulator/servers.ts';
import { run } from '../../src/cli/demo/processes.ts';
import type { FaultRule } from '../../src/emulator/faults.ts';

/** The emulator of a crash test, in a process of its own. */
export type EmulatorProcess = {
  readonly addresses: Addresses;
  /** What it answers over HTTP. */
  ask(method: 'GET' | 'POST' | 'PUT', path: string, body?: unknown): Promise<unknown>;
  setFaults(rules: readonly FaultRule[]): Promise<void>;
  /** How many messages are without an ack. */
  backlog(): Promise<number>;
  kill(): Promise<void>;
};

export async function startEmulatorProcess(...args: readonly string[]): Promise<EmulatorProcess> {
  // The clients here must not look for Google's machine; those of other processes are told the same.
  process.env.METADATA_SERVER_DETECTION = 'none';
  let addresses: Addresses = { pubsub: '', firestore: '', tasks: '' };
  const { kill } = await run({
    name: 'the emulator',
    script: fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url)),
    args: ['emulator', '--pubsub-port', '0', '--firestore-port', '0', '--tasks-port', '0', '--json', ...args],
    env: {},
    untilReady: async (firstLine) => {
      addresses = JSON.parse(await firstLine);
    },
  });
  const ask: EmulatorProcess['ask'] = async (method, path, body) => {
    const request = { method, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const response = await fetch(`http://${addresses.pubsub}${path}`, request);
    if (!response.ok) throw new Error(`the emulator refused ${method} ${path}: ${await response.text()}`);
    return response.json();
  };
  return {
    addresses,
    ask,
    async setFaults(rules) {
      await ask('PUT', '/faults', rules);
    },
    backlog: async () => ((await ask('GET', '/backlog')) as { messages: number }).messages,
    kill,
  };
}
