import { expect, test } from 'vitest';
import { lineLog } from '../../src/shell/log.ts';

function lines(least?: Parameters<typeof lineLog>[1]): string[] {
  const written: string[] = [];
  const log = lineLog((line) => written.push(line), least);
  log.debug({ n: 1 }, 'a');
  log.info({ n: 2 }, 'b');
  log.warn({ n: 3 }, 'c');
  log.error({ n: 4 }, 'd\ne');
  return written;
}

test('a log line is one line of JSON with the severities of Cloud Logging', () => {
  expect(lines('debug')).toEqual([
    '{"severity":"DEBUG","message":"a","n":1}\n',
    '{"severity":"INFO","message":"b","n":2}\n',
    '{"severity":"WARNING","message":"c","n":3}\n',
    '{"severity":"ERROR","message":"d\\ne","n":4}\n',
  ]);
});

test.each([
  [undefined, 3],
  ['info', 3],
  ['warn', 2],
  ['error', 1],
] as const)('with the least severity %s, %d of four are written', (least, count) => {
  expect(lines(least)).toHaveLength(count);
});

test.each<[string | undefined, object, string]>([
  ['p', { traceId: '0af7', n: 1 }, '"n":1,"logging.googleapis.com/trace":"projects/p/traces/0af7"'],
  ['p', { traceId: undefined, n: 1 }, '"n":1'],
  ['p', { n: 1 }, '"n":1'],
  [undefined, { traceId: '0af7' }, '"traceId":"0af7"'],
  ['', { traceId: '0af7' }, '"traceId":"0af7"'],
])('of the project %s, the fields %j are written as %s', (projectId, fields, written) => {
  const lines: string[] = [];
  lineLog((line) => lines.push(line), 'info', projectId).info(fields, 'a');
  expect(lines).toEqual([`{"severity":"INFO","message":"a",${written}}\n`]);
});
