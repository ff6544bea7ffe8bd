import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

test('kill -9 of the emulator under load loses nothing that was confirmed; without its protections it does', async () => {
  const args = ['test/crash/main.ts', 'emulator', '--kills', '2', '--seed', '7'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
  const { crash, figures } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  expect(crash).toBe('emulator');
  expect(figures).toMatchObject({ kills: 2, lost: 0, undocumentedRepeats: 0, controlsCaught: 2 });

  expect(figures.cells).toBe(14);
});
