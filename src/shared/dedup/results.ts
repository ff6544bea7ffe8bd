export type KeptResult = { readonly isKept: true; readonly value: unknown } | { readonly isKept: false };

/** A value as the record keeps it, or why it cannot: over the limit, or no JSON (a circle, a BigInt, a function). */
export function encodeResult(
  value: unknown,
  maxBytes: number,
): { readonly text: string } | { readonly text: null; readonly dropped: 'size' | 'form' } {
  if (typeof value === 'function' || typeof value === 'symbol') return { text: null, dropped: 'form' };
  let text: string;
  try {
    // In a list, so that `undefined` is told from nothing kept.
    text = value === undefined ? '[]' : JSON.stringify([value]);
  } catch {
    return { text: null, dropped: 'form' };
  }
  return Buffer.byteLength(text) > maxBytes ? { text: null, dropped: 'size' } : { text };
}

/** A text that is not of this form was written by something else: a duplicate is settled all the same, without a result. */
export function decodeResult(text: string | null): KeptResult {
  try {
    const list: unknown = text === null ? undefined : JSON.parse(text);
    return Array.isArray(list) && list.length <= 1 ? { isKept: true, value: list[0] } : { isKept: false };
  } catch {
    return { isKept: false };
  }
}
