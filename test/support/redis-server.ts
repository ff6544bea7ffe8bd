import { execFileSync, spawnSync } from 'node:child_process';
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

export type RedisServer = { readonly port: number; readonly url: string; kill(): Promise<void> };

/** A `redis-server` on a free port that keeps nothing on disk, installed where the machine lets us. */
export async function startRedisServer(...args: string[]): Promise<RedisServer> {
  install();
  const port = await freePort();
  const { promise: ready, resolve } = Promise.withResolvers<void>();
  const { kill } = await runProgram({
    name: 'redis-server',
    command: 'redis-server',
    args: ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...args],
    env: {},
    untilReady: () => ready,
    onLine: (line) => line.includes('Ready to accept connections') && resolve(),
  });
  return { port, url: `redis://127.0.0.1:${port}`, kill };
}

function install(): void {
  if (spawnSync('redis-server', ['--version']).status === 0) return;
  if (process.getuid?.() !== 0)
    throw new Error('The contract tests need a Redis: install Debian’s package redis-server, or set REDIS_URL.');
  console.log('redis-server is not on PATH; installing it with apt-get.');
  try {
    execFileSync('apt-get', ['update', '-qq'], { stdio: 'ignore' });
    execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server'], {
      stdio: 'ignore',
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
  } catch (error) {
    throw new Error('The contract tests need a Redis, and apt-get could not install redis-server: install it, or set REDIS_URL.', {
      cause: error,
    });
  }
}
