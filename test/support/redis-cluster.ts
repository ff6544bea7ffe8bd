import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from 'redis';
import { freePort } from '../../src/cli/demo/processes.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { pause } from '../../src/shared/waiting.ts';
import { type RedisServer, startRedisServer } from './redis-server.ts';

export type RedisCluster = {
  readonly nodes: readonly RedisServer[];
  /** How many keys each node holds. */
  sizes(): Promise<number[]>;
  forgetScripts(): Promise<void>;
  close(): Promise<void>;
};

const slots = 16_384;

/** Three primaries that share the slots, and no replicas. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'ptk-redis-cluster-'));
  const nodes = await Promise.all(
    ['a', 'b', 'c'].map(async (name) => {
      // The default, port + 10000, may be no port at all.
      const bus = await freePort();
      const cluster = ['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-config-file', `${name}.conf`];
      const server = await startRedisServer('--dir', folder, ...cluster);
      return { server, bus, client: await createClient({ url: server.url }).connect() };
    }),
  );
  const [first] = nodes;
  await Promise.all(
    nodes.map(async ({ client }, index) => {
      const from = Math.ceil((slots * index) / nodes.length);
      const to = Math.ceil((slots * (index + 1)) / nodes.length) - 1;
      await client.sendCommand(['CLUSTER', 'ADDSLOTSRANGE', String(from), String(to)]);
      await client.sendCommand(['CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1)]);
    }),
  );
  for (const { server, bus } of nodes.slice(1)) {
    await first?.client.sendCommand(['CLUSTER', 'MEET', '127.0.0.1', String(server.port), String(bus)]);
  }
  for (const { client } of nodes) {
    while (!/cluster_state:ok[\s\S]*cluster_known_nodes:3/.test(String(await client.sendCommand(['CLUSTER', 'INFO'])))) {
      await pause(system.clock, 20);
    }
  }
  return {
    nodes: nodes.map(({ server }) => server),
    sizes: () => Promise.all(nodes.map(({ client }) => client.dbSize())),
    forgetScripts: async () => void (await Promise.all(nodes.map(({ client }) => client.scriptFlush()))),
    async close() {
      for (const { client } of nodes) client.destroy();
      await Promise.all(nodes.map(({ server }) => server.kill()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
