import { invalidArgument } from '../grpc.ts';

/** google.protobuf.Timestamp and Duration on the wire. */
export type Seconds = { readonly seconds: string; readonly nanos: number };

/** From ms that may have a fraction; the wire has microseconds. */
export function toSeconds(ms: number): Seconds {
  const micros = Math.round(ms * 1000);
  const seconds = Math.floor(micros / 1_000_000);
  return { seconds: String(seconds), nanos: (micros - seconds * 1_000_000) * 1000 };
}

/** In ms, with the microseconds as a fraction and what is finer cut off. */
export function toMs(field: string, { seconds, nanos }: Seconds): number {
  if (nanos < -999_999_999 || nanos > 999_999_999 || !Number.isSafeInteger(Number(seconds)) || Number(seconds) * nanos < 0) {
    throw invalidArgument(`${field} is not a valid time: ${seconds} s and ${nanos} ns`);
  }
  return Number(seconds) * 1000 + Math.trunc(nanos / 1000) / 1000;
}
