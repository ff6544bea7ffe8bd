/**
 * Stored records carry the names of the wire contract: a property `firstSeenAtMs` is stored as the instant `firstSeenAt`.
 * Only top-level fields are instants.
 */
export function toWire<Instant>(record: object, instant: (atMs: number) => Instant): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(record)) {
    if (name.endsWith('AtMs') && typeof value === 'number') fields[name.slice(0, -2)] = instant(value);
    else fields[name] = value;
  }
  return fields;
}

export function fromWire<R>(fields: Readonly<Record<string, unknown>>, ms: (value: unknown) => number | undefined): R {
  const record: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'expireAt') continue;
    const atMs = name.endsWith('At') ? ms(value) : undefined;
    if (atMs === undefined) record[name] = value;
    else record[`${name}Ms`] = atMs;
  }
  return record as R;
}
