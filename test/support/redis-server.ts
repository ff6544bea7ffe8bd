import { execFileSync, spawn, spawnSync } from 'node:child_process';
import type { TestProject } from 'vitest/node';
import { freePort } from '../../src/cli/demo/processes.ts';

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string;
  }
}

/** A real Redis: `REDIS_URL`, or a `redis-server` of our own, installed where the machine lets us. */
export default async function setup(project: TestProject): Promise<() => void> {
  if (process.env.REDIS_URL) {
    project.provide('redisUrl', process.env.REDIS_URL);
    return () => {};
  }
  install();
  const port = await freePort();
  const server = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise<void>((resolve, reject) => {
    server.once('exit', (code) => reject(new Error(`redis-server ended with ${code}`)));
    server.stdout.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('Ready to accept connections')) resolve();
    });
  });
  project.provide('redisUrl', `redis://127.0.0.1:${port}`);
  return () => void server.kill('SIGKILL');
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
