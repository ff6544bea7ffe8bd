import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
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

/** The processes of a group that are still there. */
const groupOf = (leader: number): string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return Number(group) === leader && state !== 'Z';
    } catch {
      return false;
    }
  });

describe('demo', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('ended by %s it leaves no process behind', async (signal) => {
    const child = spawn(process.execPath, [cli, 'demo', '--chaos', '0'], { detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
    const leader = child.pid ?? 0;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    // The first line of progress: the whole stack is up.
    await new Promise((resolve) => child.stderr.once('data', resolve));
    expect(groupOf(leader).length).toBeGreaterThan(4);
    process.kill(leader, signal);
    await ended;
    await expect.poll(() => groupOf(leader)).toEqual([]);
  });

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
