import { describe, expect, test } from 'vitest';
import { createFaults, type FaultRule } from '../../src/emulator/faults.ts';

const rolls = (seed: number, rules: FaultRule[]) => {
  const faults = createFaults({ seed, rules });
  return Array.from({ length: 200 }, () => faults.roll('duplicate', { resource: 's' }) !== undefined);
};

describe('faults', () => {
  test('the same seed gives the same faults, another seed others', () => {
    const half: FaultRule[] = [{ kind: 'duplicate', probability: 0.5 }];
    expect(rolls(7, half)).toEqual(rolls(7, half));
    expect(rolls(7, half)).not.toEqual(rolls(8, half));
    const hits = rolls(7, half).filter(Boolean).length;
    expect(hits).toBeGreaterThan(70);
    expect(hits).toBeLessThan(130);
  });

  test('a rule fires as often as it says, at the calls and resources it names', () => {
    const faults = createFaults({ seed: 1, rules: [{ kind: 'answer-lost', rpc: 'Firestore.Commit', resource: 'projects/p/', times: 2 }] });
    const at = (rpc: string, resource: string) => faults.roll('answer-lost', { rpc, resource }) !== undefined;
    expect(at('Firestore.RunQuery', 'projects/p/databases/d')).toBe(false);
    expect(at('Firestore.Commit', 'projects/q/databases/d')).toBe(false);
    expect([1, 2, 3].map(() => at('Firestore.Commit', 'projects/p/databases/d'))).toEqual([true, true, false]);
    expect(faults.counts()).toMatchObject({ 'answer-lost': 2, duplicate: 0 });
  });

  test('a probability of 0 never fires, and 1 always', () => {
    expect(rolls(3, [{ kind: 'duplicate', probability: 0 }])).not.toContain(true);
    expect(rolls(3, [{ kind: 'duplicate', probability: 1 }])).not.toContain(false);
  });

  test('a rule falls alike at a place whatever happens elsewhere, and in whatever order', () => {
    const falls = (elsewhere: number) => {
      const faults = createFaults({ seed: 7, rules: [{ kind: 'fail-before', probability: 0.5 }] });
      return Array.from({ length: 50 }, () => {
        for (let call = 0; call < elsewhere; call++) faults.roll('fail-before', { rpc: 'Publisher.Publish', resource: 'other' });
        return faults.roll('fail-before', { rpc: 'Publisher.Publish', resource: 'topic' }) !== undefined;
      });
    };
    expect(falls(3)).toEqual(falls(0));
    expect(falls(0)).toContain(true);
    expect(falls(0)).toContain(false);
  });

  test('reset brings the same faults once more', () => {
    const faults = createFaults({ seed: 9, rules: [{ kind: 'reorder', probability: 0.5, delayMs: 1_000 }] });
    const run = () => Array.from({ length: 50 }, () => faults.roll('reorder', { resource: 's' })?.delayMs);
    const first = run();
    faults.add({ kind: 'duplicate' });
    faults.reset();
    expect(faults.counts().reorder).toBe(0);
    expect(run()).toEqual(first);
    expect(faults.roll('duplicate', { resource: 's' })).toBeUndefined();
  });

  test('a reordered message waits a tenth to all of the time, a delayed one all of it', () => {
    const faults = createFaults({
      seed: 2,
      rules: [
        { kind: 'reorder', delayMs: 1_000 },
        { kind: 'delay', delayMs: 1_000 },
      ],
    });
    const waits = Array.from({ length: 200 }, () => faults.roll('reorder', { resource: 's' })?.delayMs ?? 0);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(100);
    expect(Math.min(...waits)).toBeLessThan(200);
    expect(Math.max(...waits)).toBeGreaterThan(900);
    expect(Math.max(...waits)).toBeLessThan(1_000);
    expect(faults.roll('delay', { resource: 's' })?.delayMs).toBe(1_000);
  });

  test.each([
    [{ kind: 'droop-ack' }, 'unknown kind "droop-ack"; known are duplicate, reorder'],
    [{}, 'unknown kind undefined'],
    ['duplicate', 'it is no object'],
    [{ kind: 'duplicate', propability: 1 }, 'unknown field "propability"'],
    [{ kind: 'duplicate', probability: 1.1 }, 'probability is 1.1; it must lie from 0 to 1'],
    [{ kind: 'duplicate', times: 0 }, 'times is 0; it must be a whole number above 0'],
    [{ kind: 'duplicate', rpc: 'Publisher.Publish' }, '"duplicate" happens to messages, not to calls'],
    [{ kind: 'fail-before', rpc: 'Publish' }, 'rpc is "Publish"; it must be of the form Publisher.Publish'],
    [{ kind: 'fail-before', resource: 7 }, 'resource must be a text'],
    [{ kind: 'reorder' }, '"reorder" needs delayMs above 0'],
    [{ kind: 'delay', delayMs: 0 }, '"delay" needs delayMs above 0'],
    [{ kind: 'slow-call', delayMs: -1 }, '"slow-call" needs delayMs above 0'],
    [{ kind: 'duplicate', delayMs: 5 }, '"duplicate" knows no delayMs'],
  ])('the rule %j is refused, wherever it comes from', (given, reason) => {
    const rule = given as FaultRule;
    const faults = createFaults();
    expect(() => createFaults({ seed: 1, rules: [{ kind: 'duplicate' }, rule] })).toThrow(`fault rule 2: ${reason}`);
    expect(() => faults.add(rule)).toThrow(reason);
    expect(() => faults.replace([rule])).toThrow(reason);
  });

  test('an added rule goes before the others and can be taken back; replacing keeps the counts', () => {
    const faults = createFaults({ seed: 1, rules: [{ kind: 'delay', delayMs: 9 }] });
    const site = { resource: 's' };
    const remove = faults.add({ kind: 'delay', delayMs: 5 });
    expect(faults.roll('delay', site)).toEqual({ kind: 'delay', delayMs: 5 });
    remove();
    expect(faults.roll('delay', site)).toEqual({ kind: 'delay', delayMs: 9 });
    faults.replace([]);
    expect(faults.roll('delay', site)).toBeUndefined();
    expect(faults.counts().delay).toBe(2);
  });
});
