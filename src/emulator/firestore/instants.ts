/** A `google.protobuf.Timestamp` as it arrives. */
export type Timestamp = { readonly seconds: string; readonly nanos: number };

/** Instants are whole microseconds since 1970, as Firestore keeps them; a double holds them exactly until the year 2255. */
export function timestampOf(atMicros: number): Timestamp {
  const seconds = Math.floor(atMicros / 1_000_000);
  return { seconds: String(seconds), nanos: (atMicros - seconds * 1_000_000) * 1_000 };
}

/** Cut to whole microseconds. */
export function microsOf(timestamp: Timestamp): number {
  return Number(timestamp.seconds) * 1_000_000 + Math.floor(timestamp.nanos / 1_000);
}
