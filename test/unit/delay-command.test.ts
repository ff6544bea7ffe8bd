import { describe, expect, test } from 'vitest';
import { delayCommandOf } from '../../src/cli/delay/input.ts';
import { lineOfCancelled, lineOfDelayed, linesOfRepair, linesOfStatus, refusals } from '../../src/cli/delay/lines.ts';
import { runDelay } from '../../src/cli/delay.ts';
import type { Delayed } from '../../src/shared/delay/delays.ts';
import type { DelayStatus } from '../../src/shared/delay/status.ts';

const project = { GOOGLE_CLOUD_PROJECT: 'p' };
const queue = 'projects/p/locations/l/queues/q';

/** What the command prints, and its exit code. */
async function run(...args: string[]): Promise<[number, ...string[]]> {
  const lines: string[] = [];
  const code = await runDelay(args, {}, (line: string) => void lines.push(line));
  return [code, ...lines];
}

describe('pubsub-toolkit delay, before it asks any service', () => {
  test.each<[string[], string]>([
    [[], '"" is no command; it must be one of status, plan, repair, get, list, cancel, reschedule'],
    [['toString'], '"toString" is no command; it must be one of'],
    [['status', 'order-17'], '"order-17" is one word too many; status takes none'],
    [['status', '--hours', '0'], '--hours is "0"; it must be a whole number from 1 to 168'],
    [['status', '--hours', '169'], '--hours is "169"; it must be a whole number from 1 to 168'],
    [['status', '--hours', '1.5'], '--hours is "1.5"; it must be'],
    [['status', '--hours', ''], '--hours is ""; it must be'],
    [['status', '--at', 'noon'], 'status takes no --at; it takes --hours, --json'],
    [['repair', '--state', 'fired'], 'repair takes no --state; it takes --json'],
    [['repair', '--force'], "Unknown option '--force'"],
    [['plan'], 'plan needs --rate, in messages a second'],
    [['plan', '--rate', 'many'], '--rate is "many"; it must be a whole number from 1 to 1000000'],
    [['plan', '--rate', '0'], '--rate is "0"; it must be'],
    [['plan', '--rate', '1000001'], '--rate is "1000001"; it must be'],
    [['plan', '--rate', '1e3'], '--rate is "1e3"; it must be'],
    [['plan', '--rate', '500', '--queues', '10001'], '--queues is "10001"; it must be a whole number from 1 to 10000'],
    [['get'], 'get needs a delay id'],
    [['get', ''], 'the delay id is empty'],
    [['get', 'x'.repeat(1_025)], 'the delay id takes 1025 bytes; at most 1024 are allowed'],
    [['cancel', 'a', 'b'], '"b" is one word too many; cancel takes one delay id'],
    [['list', '--state', 'done'], '--state is "done"; it must be one of pending, releasing, fired, cancelled'],
    [['list', 'a'], '"a" is one word too many; list takes none'],
    [['reschedule', 'a'], 'reschedule needs --at'],
    [['reschedule', 'a', '--at', 'tomorrow'], 'at is "tomorrow"; it must be an RFC 3339 instant such as 2026-01-31T09:30:00Z'],
    [['reschedule', 'a', '--at', '1767225600000'], 'at is "1767225600000"; it must be an RFC 3339 instant'],
    [['reschedule', 'a', '--at', '2026-02-30T00:00:00Z'], 'at is "2026-02-30T00:00:00Z"; it must be'],
  ])('%j is refused: %s', async (args, sentence) => {
    await expect(runDelay(args, project)).rejects.toThrow(sentence);
  });

  test.each<[Record<string, string>, string]>([
    [{}, 'GOOGLE_CLOUD_PROJECT is not set; delayCommand needs it'],
    [project, 'TASK_QUEUES is not set; delayCommand needs it'],
    [{ ...project, TASK_QUEUES: 'q' }, 'TASK_QUEUES is "q", which is not of its form'],
    [{ ...project, TASK_QUEUES: queue, DELAY_STORE_TIMEOUT_MS: '1' }, 'DELAY_STORE_TIMEOUT_MS is "1"; it must be a whole number from 100'],
  ])('status with %j is refused: %s', async (environment, sentence) => {
    await expect(runDelay(['status'], environment)).rejects.toThrow(sentence);
  });

  test('the highest numbers, and a time that is over, are taken', () => {
    expect(delayCommandOf(['status', '--hours', '168'])).toEqual({ verb: 'status', hours: 168, json: false });
    expect(delayCommandOf(['status', '--json'])).toEqual({ verb: 'status', hours: 24, json: true });
    const most = { verb: 'plan', perSecond: 1_000_000, queues: 10_000, json: false };
    expect(delayCommandOf(['plan', '--rate', '1000000', '--queues', '10000'])).toEqual(most);
    const at = '2020-01-01T00:00:00Z';
    expect(delayCommandOf(['reschedule', '--at', at, '--', '-17'])).toEqual({ verb: 'reschedule', id: '-17', at, json: false });
  });

  test('plan needs no settings, and says what a rate asks for', async () => {
    expect(await run('plan', '--rate', '2000')).toEqual([
      0,
      '2000 messages a second need 5 queues',
      'of 5 each dispatches 400 a second, 500 at most: enough',
      'one more takes 16.67 % of what is scheduled from then on, and moves nothing that is; App Engine must know it before the function does',
      'App Engine: 172800000 requests a day, none with DELAY_MODE=handler-less; one more for each 25 days of a wait beyond 25',
    ]);
    expect(await run('plan', '--rate', '1')).toContain('1 messages a second need 1 queue');
    expect(await run('--rate', '2000', 'plan', '--queues', '4')).toEqual(
      expect.arrayContaining([1, 'of 4 each dispatches 500 a second, 500 at most: too few']),
    );
    const [code, line = ''] = await run('plan', '--rate', '2000', '--queues', '6', '--json');
    expect([code, JSON.parse(line)]).toMatchObject([0, { delay: { needed: 5, queues: 6, isEnough: true } }]);
  });
});

describe('what pubsub-toolkit delay prints', () => {
  const status: DelayStatus = {
    queues: [{ queue, state: 'running' }],
    ledger: { pending: 3, releasing: 1, fired: 5, cancelled: 2, overdue: 1 },
    lateness: { fromMs: Date.UTC(2026, 0, 1), count: 0, p50Ms: null, p99Ms: null, highestMs: null },
  };
  const ofStatus = [`queue ${queue}: running`, 'ledger: 3 pending, 1 releasing, 5 fired, 2 cancelled; 1 overdue'];

  test('of a status', () => {
    expect(linesOfStatus(status)).toEqual([...ofStatus, 'since 2026-01-01T00:00:00.000Z: 0 published']);
    const lateness = { ...status.lateness, count: 7, p50Ms: 5, p99Ms: 86_400_000, highestMs: Number.POSITIVE_INFINITY };
    expect(linesOfStatus({ ...status, lateness })).toEqual([
      ...ofStatus,
      'since 2026-01-01T00:00:00.000Z: 7 published, late at most 5 ms (p50), 86400000 ms (p99), more than a day (all)',
    ]);
  });

  test('of a repair', () => {
    expect(linesOfRepair({ queues: [{ queue, state: 'missing' }], checked: 9, rearmed: 4, overdue: 2, failed: 1 })).toEqual([
      `queue ${queue}: missing`,
      'looked at 9, gave 4 a task again, 2 overdue though they have one, 1 failed',
    ]);
  });

  const delayed: Delayed = {
    ...{ id: 'order-17', state: 'pending', generation: 2, dueAtMs: Date.UTC(2026, 0, 31, 9, 30), target: 'final', key: 'k' },
    ...{ recurrence: null, messageId: null },
  };
  test.each<[Partial<Delayed>, string]>([
    [{}, '"order-17": pending, due 2026-01-31T09:30:00.000Z, generation 2, to final'],
    [{ state: 'fired', messageId: '77' }, '"order-17": fired, due 2026-01-31T09:30:00.000Z, generation 2, to final, last published as 77'],
    [{ state: 'cancelled', target: '', generation: 1 }, '"order-17": cancelled, due 2026-01-31T09:30:00.000Z, generation 1'],
    [{ recurrence: { everyMs: 60_000 } }, '"order-17": pending, due 2026-01-31T09:30:00.000Z, generation 2, to final, every 60000 ms'],
    [
      { id: 'a\u001b[2J"', recurrence: { cron: '0 9 * * *', timeZone: 'Europe/Berlin' } },
      '"a\\u001b[2J\\"": pending, due 2026-01-31T09:30:00.000Z, generation 2, to final, by cron "0 9 * * *" in Europe/Berlin',
    ],
  ])('of an entry: %j', (changes, line) => {
    expect(lineOfDelayed({ ...delayed, ...changes })).toBe(line);
  });

  test('of a cancel, and of what is refused', () => {
    expect(lineOfCancelled('a', true)).toBe('"a": cancelled');
    expect(lineOfCancelled('a', false)).toMatch(
      /^"a": cancelled; nobody knew this id, and what was published under it before now is dropped/,
    );
    expect(Object.values(refusals).map((refusal) => refusal('a'))).toEqual([
      'refused: the ledger has no entry of the delay id "a"',
      'refused: "a" is cancelled',
      'refused: "a" was published, or will be',
    ]);
  });
});
