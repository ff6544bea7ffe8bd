import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

test('kill -9 of workers between receive and ack loses no message and repeats no more than is documented; controls do', {
  timeout: 180_000,
}, async () => {
  const args = ['test/crash/main.ts', 'dedup', '--short', '--seed', '7'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
  const { crash, figures } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  expect(crash).toBe('dedup');
  expect(figures).toEqual({ cells: 72, kills: 3, lost: 0, undocumentedRepeats: 0, controlsCaught: 6 });
});
