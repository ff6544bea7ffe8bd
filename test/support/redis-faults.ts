import { createServer, connect as openSocket, type Socket } from 'node:net';
import { createClient } from 'redis';
import { type RedisServer, startRedisServer } from './redis-server.ts';

export type FaultyRedis = {
  /** What clients connect to, before and after a failover. */
  readonly url: string;
  /** The next command is applied, and its connection ends before the answer comes. */
  loseNextAnswer(): void;
  /** What is written from now on is acknowledged as before and does not reach the replica. */
  holdReplication(): Promise<void>;
  /** The primary dies and the replica takes its place: what was written since `holdReplication` is lost. */
  failOver(): Promise<void>;
  close(): Promise<void>;
};

/** A real primary and a real replica behind one address, as Memorystore's standard tier has them. */
export async function startFaultyRedis(): Promise<FaultyRedis> {
  const primary = await startRedisServer('--repl-diskless-sync-delay', '0');
  const replica = await startRedisServer('--replicaof', `127.0.0.1 ${primary.port}`);
  const endpoint = await openEndpoint(primary);
  const send = async (server: RedisServer, ...commands: string[][]) => {
    const client = await createClient({ url: server.url }).connect();
    for (const command of commands) await client.sendCommand(command);
    client.destroy();
  };
  /** Waits, without end, until the replica has what was written before. */
  const replicated = () => send(primary, ['SET', 'ptk:replicated', '1'], ['WAIT', '1', '0']);
  await replicated();
  return {
    url: endpoint.url,
    loseNextAnswer: endpoint.loseNextAnswer,
    async holdReplication() {
      await replicated();
      await send(replica, ['REPLICAOF', 'NO', 'ONE']);
    },
    async failOver() {
      await primary.kill();
      endpoint.leadTo(replica);
    },
    async close() {
      await endpoint.close();
      await Promise.all([primary.kill(), replica.kill()]);
    },
  };
}

/** One address that leads to one server at a time. */
async function openEndpoint(first: RedisServer) {
  let server = first;
  let losesAnswer = false;
  const sockets = new Set<Socket>();
  const front = createServer((client) => {
    const upstream = openSocket(server.port, '127.0.0.1');
    for (const [socket, peer] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        peer.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on('data', (answer) => {
      if (losesAnswer) client.destroy();
      else client.write(answer);
      losesAnswer = false;
    });
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  const address = front.address();
  const hangUp = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `redis://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    loseNextAnswer(): void {
      losesAnswer = true;
    },
    leadTo(next: RedisServer): void {
      server = next;
      hangUp();
    },
    close: () =>
      new Promise<void>((resolve) => {
        front.close(() => resolve());
        hangUp();
      }),
  };
}
