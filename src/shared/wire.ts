/**
 * Stored records carry the names of the wire contract: a property `firstSeenAtMs` is stored as the instant `firstSeenAt`, and `sinceMs`
 * as `since`; in objects within a record too.
 */
export function toWire<Instant>(record: object, instant: (atMs: number) => Instant): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(record)) {
    if (typeof value === 'number' && /(At|^since)Ms$/.test(name)) fields[name.slice(0, -2)] = instant(value);
    else fields[name] = isPlain(value) ? toWire(value, instant) : value;
  }
  return fields;
}

export function fromWire<R>(fields: Readonly<Record<string, unknown>>, ms: (value: unknown) => number | undefined): R {
  const record: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'expireAt') continue;
    const atMs = /(At|^since)$/.test(name) ? ms(value) : undefined;
    if (atMs !== undefined) record[`${name}Ms`] = atMs;
    else record[name] = isPlain(value) ? fromWire(value, ms) : value;
  }
  return record as R;
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
