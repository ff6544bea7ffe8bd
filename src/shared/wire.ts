/**
 * Stored records carry the names of the wire contract: a property `firstSeenAtMs` is stored as the instant `firstSeenAt`, `publishTimeMs` as
 * `publishTime`, and `sinceMs` as `since`; in objects within a record too.
 */
export function toWire<Instant>(record: object, instant: (atMs: number) => Instant): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(record)) {
    if (typeof value === 'number' && name.endsWith('Ms') && isInstant(name.slice(0, -2))) fields[name.slice(0, -2)] = instant(value);
    else fields[name] = isPlain(value) ? toWire(value, instant) : value;
  }
  return fields;
}

export function fromWire<R>({ expireAt: _, ...fields }: Readonly<Record<string, unknown>>, ms: (value: unknown) => number | undefined): R {
  return named(fields, ms) as R;
}

function named(fields: Readonly<Record<string, unknown>>, ms: (value: unknown) => number | undefined): Record<string, unknown> {
  const record: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    const atMs = isInstant(name) ? ms(value) : undefined;
    if (atMs !== undefined) record[`${name}Ms`] = atMs;
    else record[name] = isPlain(value) ? named(value, ms) : value;
  }
  return record;
}

const isInstant = (name: string): boolean => name.endsWith('At') || name.endsWith('Time') || name === 'since';

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
