import { describe, expect, test } from 'vitest';
import { readOptions } from '../../src/shared/options.ts';

const table = {
  leaseMs: { default: 500, min: 100, max: 1_000, env: 'X_LEASE_MS', about: '' },
  attempts: { default: 0, min: 0, max: 5, env: 'X_ATTEMPTS', about: '' },
};
const invalid = (message: string) => expect.objectContaining({ code: 'INVALID_SETTINGS', message });

describe('readOptions', () => {
  test('takes the default where nothing is given', () => {
    expect(readOptions(table)).toEqual({ leaseMs: 500, attempts: 0 });
  });

  test('takes the environment before the default', () => {
    expect(readOptions(table, {}, { X_LEASE_MS: '600' })).toEqual({ leaseMs: 600, attempts: 0 });
  });

  test('takes an explicit value before the environment, a 0 too', () => {
    const environment = { X_LEASE_MS: '600', X_ATTEMPTS: '3' };
    expect(readOptions(table, { leaseMs: 700, attempts: 0 }, environment)).toEqual({ leaseMs: 700, attempts: 0 });
  });

  test.each([100, 1_000])('takes %d, an end of the range', (leaseMs) => {
    expect(readOptions(table, { leaseMs }).leaseMs).toBe(leaseMs);
    expect(readOptions(table, {}, { X_LEASE_MS: String(leaseMs) }).leaseMs).toBe(leaseMs);
  });

  test.each([99, 1_001, 500.5, Number.NaN, Number.POSITIVE_INFINITY])('refuses the explicit value %d', (leaseMs) => {
    expect(() => readOptions(table, { leaseMs })).toThrow(invalid(`leaseMs is ${leaseMs}; it must be a whole number from 100 to 1000`));
  });

  test.each(['99', '1001', '500.5', '', '1m', '5e2', '-500', ' 500', '0x1f4', 'NaN'])('refuses %j from the environment', (text) => {
    const message = `X_LEASE_MS is "${text}"; it must be a whole number from 100 to 1000`;
    expect(() => readOptions(table, {}, { X_LEASE_MS: text })).toThrow(invalid(message));
  });

  test('a bad explicit value is named even where the environment holds a good one', () => {
    expect(() => readOptions(table, { leaseMs: 99 }, { X_LEASE_MS: '500' })).toThrow(/^leaseMs is 99;/);
  });

  test('refuses an option that there is not, and lists those that there are', () => {
    const misspelt: object = { leaseMS: 500 };
    expect(() => readOptions(table, misspelt)).toThrow(invalid('there is no option leaseMS; there are leaseMs, attempts'));
  });

  test('does not care for other variables of the environment', () => {
    expect(readOptions(table, {}, { X_OTHER: 'x' })).toEqual({ leaseMs: 500, attempts: 0 });
  });
});
