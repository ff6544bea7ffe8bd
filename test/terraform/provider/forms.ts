import { elementsOf, text, type Value } from './values.ts';

/** What is wrong with a value, or nothing. */
export type Constraint = (value: Value) => string | undefined;

export const numberFrom =
  (min: number, max: number): Constraint =>
  (value) =>
    typeof value === 'number' && (value < min || value > max) ? `is ${value}; it must lie between ${min} and ${max}` : undefined;

export const oneOf =
  (...allowed: readonly string[]): Constraint =>
  (value) =>
    typeof value === 'string' && !allowed.includes(value) ? `is "${value}"; it must be one of ${allowed.join(', ')}` : undefined;

export const like =
  (pattern: RegExp, about: string): Constraint =>
  (value) =>
    typeof value === 'string' && !pattern.test(value) ? `is "${value}"; it must be ${about}` : undefined;

/** What `mock_provider` makes up for an attribute of another resource. */
const madeUp = /^[a-z0-9]{8}$/;

/** What is taken from another resource: under a mock it has no form, and the real provider takes it. */
export const takenFrom =
  (pattern: RegExp, about: string): Constraint =>
  (value) =>
    madeUp.test(text(value)) ? undefined : like(pattern, about)(value);

/** Seconds with an `s`, as Google's APIs write durations. */
export const secondsFrom =
  (min: number, max: number): Constraint =>
  (value) => {
    if (typeof value !== 'string') return undefined;
    const [, seconds] = /^(\d+(?:\.\d{1,9})?)s$/.exec(value) ?? [];
    if (seconds === undefined) return `is "${value}"; it must be seconds with an s, as "${min}s"`;
    return Number(seconds) < min || Number(seconds) > max ? `is "${value}"; it must lie between ${min}s and ${max}s` : undefined;
  };

export const json: Constraint = (value) => {
  if (typeof value !== 'string') return undefined;
  try {
    JSON.parse(value);
    return undefined;
  } catch {
    return 'is no JSON';
  }
};

export const each =
  (constraint: Constraint): Constraint =>
  (value) =>
    elementsOf(value).map(constraint).find(Boolean);

export const either =
  (constraint: Constraint, ...allowed: readonly string[]): Constraint =>
  (value) =>
    allowed.includes(text(value)) ? undefined : constraint(value);
