import { textOf } from '../errors.ts';
import type { Log } from '../ports.ts';
import { fitting } from './limits.ts';
import type { Mark, StreamStore } from './store.ts';

/**
 * Marks entries as published, those of all streams together: while one commit is under way the next ones gather. A mark that fails
 * costs a copy, which the relay publishes.
 */
export function createMarker(streams: StreamStore, log: Log, keepMs: number): (marks: readonly Mark[]) => Promise<void> {
  let waiting: Mark[] = [];
  let running: Promise<void> | undefined;
  const write = async (marks: readonly Mark[]) => {
    // What is kept of a body counts against the size of a commit.
    for (let start = 0, end = 0; start < marks.length; start = end) {
      end = start + fitting(marks.slice(start), ({ entry }) => (entry.keepBody ? entry.message : null));
      await streams.markPublished(marks.slice(start, end), keepMs).catch((error: unknown) => {
        log.warn({ entries: end - start, reason: textOf(error) }, 'not marked as published; the relay will publish copies');
      });
    }
  };
  const run = async () => {
    for (let marks = waiting; marks.length > 0; marks = waiting) {
      waiting = [];
      await write(marks);
    }
    running = undefined;
  };
  return (marks) => {
    waiting.push(...marks);
    running ??= run();
    return running;
  };
}
