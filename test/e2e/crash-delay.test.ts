import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

test('kill -9 of functions, releases and clients at their awaits loses no message, publishes none that was cancelled, and repeats no more than is documented; controls do', {
  timeout: 300_000,
}, async () => {
  const args = ['test/crash/main.ts', 'delay', '--short', '--seed', '7'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
  const { crash, figures } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  expect(crash).toBe('delay');
  // A cell for each await that there is: fewer of them would mean that some are not met any more.
  expect(figures).toEqual({ cells: expect.any(Number), kills: 4, lost: 0, undocumentedRepeats: 0, controlsCaught: 6 });
  expect(figures.cells).toBeGreaterThan(190);
});
