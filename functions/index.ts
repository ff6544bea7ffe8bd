import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { http } from '@google-cloud/functions-framework';
import { textOf } from '../src/shared/errors.ts';
import type { Environment } from '../src/shell/settings.ts';
import { startDedup } from './dedup.ts';
import { startDelay } from './delay.ts';
import { startFifo } from './fifo.ts';
import type { HttpFunction } from './http.ts';

const targets: Readonly<Record<string, (environment: Environment, folder: string) => Promise<HttpFunction>>> = {
  dedup: startDedup,
  delay: startDelay,
  fifo: startFifo,
};

/** Checks and connects the one target before the framework listens: what cannot work takes no message. */
const target = process.env.FUNCTION_TARGET ?? '';
try {
  const start = targets[target];
  if (!start) throw new Error(`FUNCTION_TARGET is "${target}"; it must be one of ${Object.keys(targets).join(', ')}`);
  http(target, await start(process.env, dirname(fileURLToPath(import.meta.url))));
} catch (error) {
  console.error(`${target || 'the function'} does not start: ${textOf(error)}`);
  process.exit(1);
}
