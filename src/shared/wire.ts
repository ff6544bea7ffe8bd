/**
 * Stored records carry the names of the wire contract: a property `firstSeenAtMs` is stored as the instant `firstSeenAt`.
 * Only top-level fields are instants.
 */
export function toWire<Instant>(record: object, instant: (atMs: number) => Instant): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) =>
      name.endsWith('AtMs') && typeof value === 'number' ? [name.slice(0, -2), instant(value)] : [name, value],
    ),
  );
}

export function fromWire<R>(fields: Readonly<Record<string, unknown>>, ms: (value: unknown) => number | undefined): R {
  const { expireAt: _, ...kept } = fields;
  return Object.fromEntries(
    Object.entries(kept).map(([name, value]) => {
      const atMs = name.endsWith('At') ? ms(value) : undefined;
      return atMs === undefined ? [name, value] : [`${name}Ms`, atMs];
    }),
  ) as R;
}
