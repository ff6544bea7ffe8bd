import { describe, expect, test } from 'vitest';
import { type ErrorCode, errorCodeOf, errorCodes, ToolkitError } from '../../src/shared/errors.ts';
import { ack, deadLetter, nack, verdictOf, verdictOfError } from '../../src/shared/verdict.ts';

describe('verdictOf', () => {
  test.each([ack('duplicate'), nack('early', 50), deadLetter('refused', 'why')])('passes on the verdict %o', (verdict) => {
    expect(verdictOf(verdict)).toBe(verdict);
  });

  test('knows a verdict that a second copy of the package made', () => {
    const foreign = Object.defineProperty({ kind: 'nack', reason: 'failed' }, Symbol.for('pubsub-toolkit.verdict'), { value: true });
    expect(verdictOf(foreign)).toBe(foreign);
  });

  test.each([undefined, null, false, 0, 'nack', {}, { kind: 'nack', reason: 'failed' }, []])('takes %o as processed', (returned) => {
    expect(verdictOf(returned)).toEqual({ kind: 'ack', reason: 'processed' });
  });
});

test('a nack says when to come again only where it is known', () => {
  expect(nack('failed')).toEqual({ kind: 'nack', reason: 'failed' });
  expect(nack('inProgress', 0)).toEqual({ kind: 'nack', reason: 'inProgress', retryAfterMs: 0 });
});

describe('verdictOfError', () => {
  test.each<[ErrorCode, object]>([
    ['MALFORMED_MESSAGE', { kind: 'deadLetter', reason: 'malformed', detail: 'why' }],
    ['MESSAGE_TOO_LARGE', { kind: 'deadLetter', reason: 'tooLarge', detail: 'why' }],
    ['REFUSED', { kind: 'deadLetter', reason: 'refused', detail: 'why' }],
    ['STORE_UNAVAILABLE', { kind: 'nack', reason: 'storeUnavailable' }],
    ['SERVICE_UNAVAILABLE', { kind: 'nack', reason: 'failed' }],
    ['STREAM_CONTENDED', { kind: 'nack', reason: 'failed' }],
    ['INVALID_SETTINGS', { kind: 'nack', reason: 'failed' }],
  ])('%s', (code, verdict) => {
    expect(verdictOfError(new ToolkitError(code, 'why'))).toEqual(verdict);
  });

  test.each(Object.entries(errorCodes))('%s has the fate that its table says', (code, { fate }) => {
    expect(verdictOfError({ code }).kind).toBe(fate === 'deadLetter' ? 'deadLetter' : 'nack');
  });

  test('goes by the code, since the class of a second copy of the package is another one', () => {
    const foreign = Object.assign(new Error('why'), { code: 'REFUSED' });
    expect(verdictOfError(foreign)).toEqual({ kind: 'deadLetter', reason: 'refused', detail: 'why' });
  });

  test.each([new Error('boom'), { code: 3 }, { code: 'ENOENT' }, { code: 'toString' }, 'text', null, undefined])(
    'an error that is not the toolkit’s is a failure: %o',
    (error) => {
      expect(verdictOfError(error)).toEqual({ kind: 'nack', reason: 'failed' });
      expect(errorCodeOf(error)).toBeUndefined();
    },
  );
});

test('an error keeps its cause, and has none where none was given', () => {
  const cause = new Error('socket');
  expect(new ToolkitError('STORE_UNAVAILABLE', 'put', cause).cause).toBe(cause);
  expect(new ToolkitError('STORE_UNAVAILABLE', 'put')).not.toHaveProperty('cause');
});
