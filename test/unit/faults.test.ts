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

  test.each([undefined, 0, -1])('a hold-back rule with holdMs %s is refused, wherever it comes from', (holdMs) => {
    const rule = { kind: 'hold-back', ...(holdMs !== undefined && { holdMs }) } as const;
    const faults = createFaults();
    expect(() => createFaults({ seed: 1, rules: [rule] })).toThrow('holdMs above 0');
    expect(() => faults.add(rule)).toThrow('holdMs above 0');
    expect(() => faults.replace([rule])).toThrow('holdMs above 0');
  });

  test('an added rule goes before the others and can be taken back; replacing keeps the counts', () => {
    const faults = createFaults();
    const remove = faults.add({ kind: 'hold-back', holdMs: 5 });
    expect(faults.roll('hold-back', {})).toMatchObject({ holdMs: 5 });
    remove();
    expect(faults.roll('hold-back', {})).toBeUndefined();
    faults.replace([]);
    expect(faults.counts()['hold-back']).toBe(1);
  });
});
