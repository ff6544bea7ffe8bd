import { hash as digest } from 'node:crypto';

/** An event that a document has seen: a digest of its key, and when it was first published. */
export type ProcessedEvent = { readonly hash: string; readonly atMs: number };

/** What a document knows of the events that changed it (**wire**, in the field `processedEvents`). */
export type ProcessedEvents = {
  /** In the order in which they were applied. */
  readonly events: readonly ProcessedEvent[];
  /** The latest instant of an event that has been dropped from the list; 0 while none has. */
  readonly watermarkMs: number;
};

/** `atMs` undefined: nobody knows when it was published, so it is never too old. */
export type IncomingEvent = { readonly hash: string; readonly atMs: number | undefined };

export type EventDecision =
  | { readonly kind: 'run'; readonly next: ProcessedEvents }
  | { readonly kind: 'duplicate' }
  /** From a time of which the list is not complete: it may have been applied, or not. */
  | { readonly kind: 'tooOld'; readonly watermarkMs: number };

export const noEvents: ProcessedEvents = { events: [], watermarkMs: 0 };

/** 132 bits: no two of a document's keys share them. */
export const eventHash = (key: string): string => digest('sha256', key, 'base64url').slice(0, 22);

/**
 * Decides whether an event is applied to its document, and what the document knows afterwards.
 *
 * An event in the list is a duplicate, at whatever instant. Above the watermark the list is complete, so an event that is not in it is
 * new. At the watermark itself it is not complete: of several events of that instant one has been dropped.
 *
 * Of those that were there before, the earliest is dropped (of several, the one applied first). The event itself stays, however old:
 * its copies are on their way. One without an instant takes the latest that is known, and ages with it.
 */
export function decideEvent(
  { events, watermarkMs }: ProcessedEvents,
  { hash, atMs }: IncomingEvent,
  { maxEvents }: { readonly maxEvents: number },
): EventDecision {
  if (events.some((event) => event.hash === hash)) return { kind: 'duplicate' };
  if (atMs !== undefined && atMs <= watermarkMs) return { kind: 'tooOld', watermarkMs };
  const latestMs = events.reduce((latest, event) => Math.max(latest, event.atMs), watermarkMs);
  const drops = Math.max(events.length + 1 - maxEvents, 0);
  const dropped = new Set(events.toSorted((a, b) => a.atMs - b.atMs).slice(0, drops));
  return {
    kind: 'run',
    next: {
      events: [...events.filter((event) => !dropped.has(event)), { hash, atMs: atMs ?? latestMs }],
      watermarkMs: [...dropped].reduce((watermark, event) => Math.max(watermark, event.atMs), watermarkMs),
    },
  };
}

/** Why what stands in the field cannot be one that this version wrote. */
export function processedEventsFault(value: unknown): string | undefined {
  const { events, watermarkMs } = (value ?? {}) as { readonly [Name in keyof ProcessedEvents]?: unknown };
  if (!Array.isArray(events) || typeof watermarkMs !== 'number') return 'it lacks events or watermarkMs';
  const isEvent = (event: Partial<ProcessedEvent> | null) => typeof event?.hash === 'string' && typeof event.atMs === 'number';
  return events.every(isEvent) ? undefined : 'one of its events lacks hash or atMs';
}
