import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { freePort, runProgram } from '../../src/cli/demo/processes.ts';

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string;
  }
}

/** A real Redis for all contract tests: `REDIS_URL`, or a server of our own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (process.env.REDIS_URL) {
    project.provide('redisUrl', process.env.REDIS_URL);
    return async () => {};
  }
  const server = await startRedisServer();
  project.provide('redisUrl', server.url);
  return server.kill;
}

export type RedisServer = {
  readonly port: number;
  readonly url: string;
  kill(): Promise<void>;
  /** Begins again on the same port, with nothing stored. */
  restart(): Promise<void>;
};

/** A `redis-server` on a free port that keeps nothing on disk, installed where the machine lets us. */
export async function startRedisServer(...args: string[]): Promise<RedisServer> {
  if (!installed('redis-server'))
    throw new Error('The contract tests need a Redis: install Debian’s package redis-server, or set REDIS_URL.');
  return start('redis-server', args);
}

/** Undefined where this machine has no Valkey and no package of it. */
export const startValkeyServer = async (): Promise<RedisServer | undefined> =>
  installed('valkey-server') ? start('valkey-server', []) : undefined;

/** What a client must trust of a server with TLS: made once, valid until 2124, for `localhost` and 127.0.0.1. */
export const testAuthority = readFileSync(pemOf('ca'));

/** A server that takes TLS alone, and one user with a password. */
export async function startSecureRedisServer(user: string, password: string): Promise<RedisServer> {
  const port = await freePort();
  const tls = ['--tls-cert-file', pemOf('server'), '--tls-key-file', pemOf('server-key'), '--tls-auth-clients', 'no'];
  const access = ['--user', user, 'on', `>${password}`, '~*', '+@all', '--user', 'default', 'off'];
  const server = await startRedisServer('--port', '0', '--tls-port', String(port), ...tls, ...access);
  return { ...server, port, url: `rediss://${user}:${encodeURIComponent(password)}@localhost:${port}` };
}

function pemOf(name: 'ca' | 'server' | 'server-key'): string {
  return fileURLToPath(new URL(`redis-tls/${name}.pem`, import.meta.url));
}

async function start(command: string, args: readonly string[]): Promise<RedisServer> {
  const port = await freePort();
  let begun = Promise.withResolvers<void>();
  const { kill, restart } = await runProgram({
    name: command,
    command,
    args: ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...args],
    env: {},
    untilReady: () => begun.promise,
    onLine: (line) => line.includes('Ready to accept connections') && begun.resolve(),
  });
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    kill,
    restart() {
      begun = Promise.withResolvers<void>();
      return restart();
    },
  };
}

/** On PATH, if need be by Debian's package of the same name. */
function installed(server: 'redis-server' | 'valkey-server'): boolean {
  const isThere = () => spawnSync(server, ['--version']).status === 0;
  if (isThere()) return true;
  if (process.getuid?.() !== 0) return false;
  const apt = (...args: string[]) =>
    execFileSync('apt-get', ['-qq', ...args], { stdio: 'ignore', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } });
  const isOffered = () => /Candidate: \d/.test(spawnSync('apt-cache', ['policy', server], { encoding: 'utf8' }).stdout ?? '');
  try {
    // Valkey's tests can be done without, and a list of packages takes long to fetch.
    if (server === 'redis-server' && !isOffered()) apt('update');
    if (!isOffered()) return false;
    console.log(`${server} is not on PATH; installing it with apt-get.`);
    apt('install', '-y', '--no-install-recommends', server);
  } catch {
    return false;
  }
  return isThere();
}
