import { errorCodeOf, ToolkitError, textOf } from '../errors.ts';
import type { Log, Publisher, System } from '../ports.ts';
import { within } from '../waiting.ts';
import { type Entry, tombstoneOf } from './decide.ts';
import { requestsOf } from './limits.ts';

export type PublishingParts = { readonly publisher: Publisher; readonly system: System; readonly log: Log; readonly timeoutMs: number };

/** By key: the message's id; or, where nobody else will publish it, why it is not in its topic. */
export type Outcomes = ReadonlyMap<string, string | ToolkitError>;

/** In order, one request at a time; what fails is left to the relay, and so is all that follows it. */
export async function publishUntilFailure(parts: PublishingParts, entries: readonly Entry[]): Promise<Outcomes> {
  const outcomes = new Map<string, string | ToolkitError>();
  for (const request of requestsOf(entries, (entry) => entry)) {
    try {
      await publishInto(outcomes, parts, request);
    } catch (error) {
      parts.log.warn({ stream: request[0]?.stream, from: request[0]?.seq, reason: textOf(error) }, 'left to the relay');
      return outcomes;
    }
  }
  return outcomes;
}

/** In order, where no entry stands behind: each that fails is told by its number; one that is refused for good leaves a tombstone. */
export async function publishEach(parts: PublishingParts, entries: readonly Entry[]): Promise<Outcomes> {
  const outcomes = new Map<string, string | ToolkitError>();
  for (const request of requestsOf(entries, (entry) => entry)) {
    try {
      await publishInto(outcomes, parts, request);
    } catch (error) {
      const isRefused = errorCodeOf(error) === 'REFUSED';
      // One of them is refused, and the service does not say which.
      const alone = isRefused && request.length > 1 ? await publishAlone(parts, request) : undefined;
      for (const entry of request) {
        const outcome = alone?.get(entry.key) ?? unpublished(entry, error);
        outcomes.set(entry.key, outcome);
      }
      if (isRefused && request.length === 1) await bury(parts, request[0]);
    }
  }
  return outcomes;
}

async function publishAlone(parts: PublishingParts, entries: readonly Entry[]): Promise<Outcomes> {
  const outcomes = new Map<string, string | ToolkitError>();
  for (const entry of entries) for (const [key, outcome] of await publishEach(parts, [entry])) outcomes.set(key, outcome);
  return outcomes;
}

async function bury({ publisher, log }: PublishingParts, entry: Entry | undefined): Promise<void> {
  if (!entry?.message) return;
  const { stream, seq, topic, message } = entry;
  await publisher.publish(topic, [tombstoneOf(message, 'refused')]).catch((error: unknown) => {
    log.error({ stream, seq, reason: textOf(error) }, 'a number is missing in its stream: its tombstone is not published either');
  });
}

async function publishInto(
  outcomes: Map<string, string | ToolkitError>,
  { publisher, system, timeoutMs }: PublishingParts,
  request: readonly Entry[],
): Promise<void> {
  const messages = request.map(({ message }) => message).filter((message) => message !== null);
  const publishing = publisher.publish(request[0]?.topic ?? '', messages);
  const messageIds = await within(system.clock, timeoutMs, 'SERVICE_UNAVAILABLE', 'publish', publishing);
  request.forEach(({ key }, index) => {
    outcomes.set(key, messageIds[index] ?? '');
  });
}

function unpublished({ stream, epoch, seq }: Entry, error: unknown): ToolkitError {
  const code = errorCodeOf(error) ?? 'SERVICE_UNAVAILABLE';
  return new ToolkitError(code, `number ${seq} of stream ${stream} (epoch ${epoch}) is not published: ${textOf(error)}`, error);
}
