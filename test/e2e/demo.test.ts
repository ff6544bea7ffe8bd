import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const cli = fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url));

type Demo = {
  code: number | null;
  demo: Record<
    'published' | 'effects' | 'duplicatesInjected' | 'duplicatesSuppressed' | 'lost' | 'doubled' | 'outOfOrder' | 'early' | 'seconds',
    number
  >;
};

function runDemo(...args: string[]): Promise<Demo> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [cli, 'demo', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let printed = '';
    let errors = '';
    child.stdout.on('data', (chunk: Buffer) => {
      printed += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString();
    });
    child.once('exit', (code) => {
      const last = printed.trim().split('\n').at(-1) ?? '';
      if (last.startsWith('{')) resolve({ code, ...JSON.parse(last) });
      else reject(new Error(`the demo ended with ${code}: ${errors.slice(-1_000)}`));
    });
  });
}

describe('demo', () => {
  test('with faults and a kill -9 every webhook has its effect once, in order and on time', async () => {
    const { code, demo } = await runDemo('--seed', '11');
    expect(demo).toMatchObject({ published: 329, effects: 329, lost: 0, doubled: 0, outOfOrder: 0, early: 0 });
    expect(demo.duplicatesInjected).toBeGreaterThan(50);
    expect(demo.duplicatesSuppressed).toBeGreaterThan(50);
    expect(code).toBe(0);
  });

  test('without faults nothing is injected', async () => {
    const { code, demo } = await runDemo('--chaos', '0');
    expect(demo).toMatchObject({ published: 329, effects: 329, duplicatesInjected: 0, lost: 0, doubled: 0, outOfOrder: 0, early: 0 });
    expect(code).toBe(0);
  });

  test('control: without dedup there are doubled effects, and it says so', async () => {
    const { code, demo } = await runDemo('--without', 'dedup');
    expect(demo.doubled).toBeGreaterThan(0);
    expect(demo.lost).toBe(0);
    expect(code).toBe(1);
  });

  test('control: without fifo there are effects out of order, and it says so', async () => {
    const { code, demo } = await runDemo('--without', 'fifo');
    expect(demo.outOfOrder).toBeGreaterThan(0);
    expect(demo.lost).toBe(0);
    expect(code).toBe(1);
  });
});
