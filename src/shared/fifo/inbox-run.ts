import { lazyContext } from '../context.ts';
import { textOf } from '../errors.ts';
import { nack, type Verdict, verdictOfError } from '../verdict.ts';
import { failed, released } from './cursor.ts';
import type { Item } from './hands.ts';
import { createInboxGroup, type GroupEnd, type InboxGroupParts } from './inbox-group.ts';
import { createLookAhead } from './look-ahead.ts';
import type { Run } from './run.ts';

/**
 * Runs the numbers that follow each other in transactions: up to `commitEvery` of them, what their handlers write, their records and the cursor
 * are one commit (protocol 4.5). A process that dies at any instant leaves all of it or nothing.
 */
export function createInboxRun<Transaction>(parts: InboxGroupParts<Transaction>): Run {
  const { hands, telemetry } = parts;
  const commit = createInboxGroup(parts);

  return async (turn, first) => {
    const { lease, cursor } = turn;
    const { round } = cursor;
    let { attempts, blocked } = cursor;
    const ahead = createLookAhead(parts, turn.isParked);
    let groupSize = cursor.attempts > 0 ? 1 : parts.commitEvery;
    let standing = first;
    let count = 0;
    /** Known and not done, from the head. */
    let items: Item[] = [{ ...turn, delivery: first.place.seq === turn.place.seq ? first : undefined }];

    /** As many as one group takes, and one that follows them. */
    const collect = async () => {
      for (let last = items.at(-1); last && items.length <= groupSize; last = items.at(-1)) {
        const next = await ahead.next({ ...last.place, seq: last.place.seq + 1 }, standing);
        if (!next) return;
        items.push(next);
      }
    };
    const contextOf = ({ delivery }: Item) => {
      const { context } = delivery ?? standing;
      return lazyContext(() => AbortSignal.any([context.signal, lease.signal()]), { fence: lease.fence, ...(round > 0 && { round }) });
    };

    /** @returns undefined where a write of one handler was refused at the commit: of many nobody knows whose, so they go one by one */
    const committed = async (): Promise<GroupEnd | undefined> => {
      const group = { lease, attempts, blocked, items: items.slice(0, groupSize), more: items[groupSize], standing, contextOf };
      try {
        return await commit(group);
      } catch (error) {
        if (group.items.length === 1 || verdictOfError(error).reason !== 'failed') throw error;
        groupSize = 1;
        return undefined;
      }
    };
    const answer = ({ passed, staying }: GroupEnd): void => {
      for (const { item, verdict } of passed) if (item.delivery) item.delivery.verdict = verdict;
      for (const one of new Set([standing, ...passed.map(({ item }) => item.delivery)]))
        if (one && one !== staying) one.settle(one.verdict);
      standing = staying;
    };
    const giveBack = (left: readonly Item[], verdict: Verdict): void => {
      for (const { delivery } of left) if (delivery && delivery !== standing) delivery.settle(verdict);
    };

    try {
      for (;;) {
        await collect();
        const end = await committed();
        if (!end) continue;
        answer(end);
        count += end.passed.length;
        const last = end.passed.at(-1)?.item.place ?? turn.place;
        items = items.slice(end.passed.length);
        attempts = 0;
        blocked = end.passed.at(-1)?.blocked ?? blocked;
        hands.call(last.stream, end.isKept ? last.seq : last.seq + 1);
        if (end.isKept) continue;
        await lease.drop();
        const [stopped, ...rest] = items;
        giveBack(rest, nack('inProgress'));
        if (!end.stops || !stopped) return { last, standing, count, stop: undefined };
        const { verdict } = end.stops;
        return {
          last: stopped.place,
          standing,
          count,
          stop: verdict.kind === 'nack' || standing === stopped.delivery ? verdict : standing.verdict,
        };
      }
    } catch (error) {
      const [item, ...rest] = items;
      const verdict = verdictOfError(error);
      const { reason } = verdict;
      telemetry.log.warn(
        { stream: turn.place.stream, seq: item?.place.seq, reason: textOf(error) },
        'transaction of the stream not committed',
      );
      if (reason === 'leaseLost') telemetry.count('ptk.fifo.lease_lost');
      // Nothing of it is known to be written; a handler's write that was refused counts as its failure.
      if (reason === 'leaseLost' || reason === 'storeUnavailable') await lease.drop();
      else await lease.end(reason === 'failed' ? failed : released, 'forever').catch(() => lease.drop());
      if (item) giveBack([item], verdict);
      giveBack(rest, nack('inProgress'));
      return { last: item?.place ?? turn.place, standing, count, stop: verdict };
    }
  };
}
