import { describe, expect, test } from 'vitest';
import {
  decideEvent,
  type EventDecision,
  eventHash,
  noEvents,
  type ProcessedEvents,
  processedEventsFault,
} from '../../src/shared/dedup/processed-events.ts';

/** `a100` is the event `a` of the instant 100. */
const listed = (text: string) =>
  text
    .split(' ')
    .filter(Boolean)
    .map((name) => ({ hash: name.slice(0, 1), atMs: Number(name.slice(1)) }));
const known = (text: string, watermarkMs = 0): ProcessedEvents => ({ events: listed(text), watermarkMs });
const decided = (before: ProcessedEvents, hash: string, atMs: number | undefined, maxEvents = 3): EventDecision =>
  decideEvent(before, { hash, atMs }, { maxEvents });
const runs = (text: string, watermarkMs = 0): EventDecision => ({ kind: 'run', next: known(text, watermarkMs) });

describe('decideEvent', () => {
  test.each<[string, ProcessedEvents, string, number | undefined, EventDecision]>([
    ['the first of a document', noEvents, 'a', 100, runs('a100')],
    ['a second one', known('a100'), 'b', 200, runs('a100 b200')],
    ['one that happened before those that are known', known('b200'), 'a', 100, runs('b200 a100')],
    ['another one of the same instant', known('a100'), 'b', 100, runs('a100 b100')],
    ['one that is in the list', known('a100 b200'), 'a', 100, { kind: 'duplicate' }],
    ['one that is in the list, with another instant', known('a100 b200'), 'a', 999, { kind: 'duplicate' }],
    ['one that is in the list, without an instant', known('a100 b200'), 'a', undefined, { kind: 'duplicate' }],
    ['one that is in the list and below the watermark', known('a100 b400', 300), 'a', 100, { kind: 'duplicate' }],
    ['one that is in the list and at the watermark', known('a300 b400', 300), 'a', 300, { kind: 'duplicate' }],
    ['another one just above the watermark', known('b400', 300), 'c', 301, runs('b400 c301', 300)],
    ['another one at the watermark', known('b400', 300), 'c', 300, { kind: 'tooOld', watermarkMs: 300 }],
    ['another one just below the watermark', known('b400', 300), 'c', 299, { kind: 'tooOld', watermarkMs: 300 }],
    ['the earliest instant there is, while nothing has been dropped', known('b400'), 'c', 1, runs('b400 c1')],
  ])('%s', (_, before, hash, atMs, decision) => {
    expect(decided(before, hash, atMs)).toEqual(decision);
  });

  test.each<[string, ProcessedEvents, string, number | undefined, EventDecision]>([
    ['the last that fits drops none', known('a100 b200'), 'c', 300, runs('a100 b200 c300')],
    ['one more drops the earliest, which the watermark takes', known('a100 b200 c300'), 'd', 400, runs('b200 c300 d400', 100)],
    ['the earliest is dropped, wherever it stands', known('c300 a100 b200'), 'd', 400, runs('c300 b200 d400', 100)],
    ['of two of one instant, the one applied first is dropped', known('a100 b100 c300'), 'd', 400, runs('b100 c300 d400', 100)],
    ['the event itself stays, though it is the earliest', known('b200 c300 d400', 100), 'e', 150, runs('c300 d400 e150', 200)],
    ['one below the watermark that goes does not lower it', known('c300 d400 e150', 200), 'f', 500, runs('c300 d400 f500', 200)],
    ['a limit that was lowered drops as many as are too many', known('a100 b200 c300 d400'), 'e', 500, runs('c300 d400 e500', 200)],
  ])('of three places: %s', (_, before, hash, atMs, decision) => {
    expect(decided(before, hash, atMs)).toEqual(decision);
  });

  test('with one place the event itself is known and each one before it is too old', () => {
    const first = decided(noEvents, 'a', 100, 1);
    expect(first).toEqual(runs('a100'));
    expect(decided(known('a100'), 'b', 100, 1)).toEqual(runs('b100', 100));
    expect(decided(known('b100', 100), 'b', 100, 1)).toEqual({ kind: 'duplicate' });
    expect(decided(known('b100', 100), 'a', 100, 1)).toEqual({ kind: 'tooOld', watermarkMs: 100 });
  });

  test('one without an instant is never too old, and ages with the latest that is known', () => {
    expect(decided(noEvents, 'a', undefined)).toEqual(runs('a0'));
    expect(decided(known('b400 c350', 300), 'a', undefined)).toEqual(runs('b400 c350 a400', 300));
    expect(decided(known('', 300), 'a', undefined)).toEqual(runs('a300', 300));
  });

  test('whatever the order, no event runs twice and none is lost without a word', () => {
    const instants = [300, 100, 100, 200, 100, 300, 200, 200, 100, 300, 300, 100];
    let before = noEvents;
    const outcomes = new Map<number, string[]>();
    // Three deliveries of twelve events, the second and third in other orders.
    for (const step of [1, 5, 7]) {
      for (let turn = 0; turn < 12; turn++) {
        const event = (turn * step) % 12;
        const decision = decideEvent(before, { hash: `${event}`, atMs: instants[event] }, { maxEvents: 4 });
        if (decision.kind === 'run') before = decision.next;
        outcomes.set(event, [...(outcomes.get(event) ?? []), decision.kind]);
        expect(before.events.length).toBeLessThanOrEqual(4);
      }
    }
    for (const kinds of outcomes.values()) {
      expect(kinds).toHaveLength(3);
      // It ran once, or every copy of it is a dead letter.
      expect(kinds.filter((kind) => kind === 'run').length).toBe(kinds.includes('run') ? 1 : 0);
      if (!kinds.includes('run')) expect(new Set(kinds)).toEqual(new Set(['tooOld']));
    }
    expect([...outcomes.values()].flat()).toContain('tooOld');
  });
});

test('a hash has 22 characters, and is the same for the same key', () => {
  expect(eventHash('k')).toBe('glTDKakoUPbVOd03b0gW7i');
});

test.each<[unknown, string | undefined]>([
  [{ events: [], watermarkMs: 0 }, undefined],
  [{ events: [{ hash: 'a', atMs: 1 }], watermarkMs: 0 }, undefined],
  [null, 'it lacks events or watermarkMs'],
  ['x', 'it lacks events or watermarkMs'],
  [{ events: {}, watermarkMs: 0 }, 'it lacks events or watermarkMs'],
  [{ events: [], watermarkMs: '0' }, 'it lacks events or watermarkMs'],
  [{ events: [null], watermarkMs: 0 }, 'one of its events lacks hash or atMs'],
  [{ events: [{ hash: 'a' }], watermarkMs: 0 }, 'one of its events lacks hash or atMs'],
])('of %j in the field it is said: %s', (value, fault) => {
  expect(processedEventsFault(value)).toBe(fault);
});
