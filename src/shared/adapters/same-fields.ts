/**
 * Names of the fields of `written` that `stored` holds otherwise. Fields that are only stored do not count: others may have added
 * them. What a write leaves to the server (`FieldValue.serverTimestamp()`, `increment()`, …) cannot be compared and is left out,
 * and so is `undefined`, which a client that takes it does not store.
 */
export function differingFields(stored: object, written: object): string[] {
  const held = stored as Readonly<Record<string, unknown>>;
  return Object.entries(written).flatMap(([name, value]) => (value === undefined || isSame(held[name], value) ? [] : [name]));
}

/** All by shape: a second copy of the client has classes of its own. */
function isSame(stored: unknown, written: unknown): boolean {
  if (isTransform(written)) return true;
  if (typeof written === 'bigint' || typeof stored === 'bigint') return isNumeric(stored) && String(stored) === String(written);
  if (!isObject(stored) || !isObject(written)) return stored === written || (Number.isNaN(stored) && Number.isNaN(written));
  const form = formOf(written);
  if (form !== undefined) return formOf(stored) === form;
  if (typeof written.isEqual === 'function') return written.isEqual(stored) === true;
  if (Array.isArray(written)) {
    return Array.isArray(stored) && stored.length === written.length && written.every((value, index) => isSame(stored[index], value));
  }
  return !Array.isArray(stored) && formOf(stored) === undefined && isSameMap(fieldsOf(stored), fieldsOf(written));
}

/** A map within a field has these keys and no others, but for those that were left to the server. */
function isSameMap(stored: ReadonlyMap<string, unknown>, written: ReadonlyMap<string, unknown>): boolean {
  return [...new Set([...stored.keys(), ...written.keys()])].every((key) => isSame(stored.get(key), written.get(key)));
}

const fieldsOf = (value: object): ReadonlyMap<string, unknown> => (value instanceof Map ? value : new Map(Object.entries(value)));

/** A Firestore value as text that is equal for equal values; undefined for a map, a list and every other kind. */
function formOf(value: Members): string | undefined {
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('base64')}`;
  if (value instanceof Date) return instant(Math.floor(value.getTime() / 1000), value.getMilliseconds() * 1000);
  if (typeof value.toMillis === 'function') return instant(Number(value.seconds), Math.floor(Number(value.nanoseconds) / 1000));
  if (typeof value.isEqual !== 'function') return undefined;
  if (typeof value.toArray === 'function') return `vector ${JSON.stringify(value.toArray())}`;
  if (typeof value.latitude === 'number') return `point ${value.latitude} ${value.longitude}`;
  return typeof value.path === 'string' ? `document ${value.path}` : undefined;
}

/** Firestore keeps microseconds. */
const instant = (seconds: number, micros: number): string => `instant ${seconds} ${micros}`;

type Members = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Members => typeof value === 'object' && value !== null;
const isNumeric = (value: unknown): boolean => typeof value === 'bigint' || Number.isInteger(value);
const isTransform = (value: unknown): boolean => {
  const name = isObject(value) ? value.methodName : undefined;
  return typeof name === 'string' && name.startsWith('FieldValue.');
};
