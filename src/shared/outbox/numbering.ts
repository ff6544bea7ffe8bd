import { malformed, ToolkitError } from '../errors.ts';
import type { System } from '../ports.ts';
import { jittered, pause, within } from '../waiting.ts';
import { type CounterState, type Entry, isSetBack, type Numbering, planNumbers, topicConflict, type Unnumbered } from './decide.ts';
import type { StreamStore } from './store.ts';

export type NumberingParts = {
  readonly streams: StreamStore;
  readonly system: System;
  readonly handoffMs: number;
  readonly storeTimeoutMs: number;
  /** Numbers alone, without entries. */
  readonly isDirect: boolean;
};

/** `fresh` got their numbers by this call, `old` had them; `refused`, by key, may have none in this stream. */
export type Numbered = {
  readonly fresh: readonly Entry[];
  readonly old: readonly Entry[];
  readonly refused: ReadonlyMap<string, ToolkitError>;
};

const commitTries = 20;
const longestPauseMs = 1_000;
const fullLookEvery = 3;
/** How many streams' counters are remembered; another one costs a read. */
const rememberedCounters = 10_000;

/**
 * Numbers groups of a stream, one after the other: counter and entries in one commit, on the version that the last one left (protocol
 * 3.3).
 * @throws STORE_UNAVAILABLE, STREAM_CONTENDED, RECORD_UNREADABLE
 */
export function createNumbering({ streams, system, handoffMs, storeTimeoutMs, isDirect }: NumberingParts) {
  const { clock } = system;
  const counters = new Map<string, CounterState>();
  const remember = (stream: string, state: CounterState) => {
    counters.delete(stream);
    counters.set(stream, state);
    const [oldest] = counters.keys();
    if (counters.size > rememberedCounters && oldest !== undefined) counters.delete(oldest);
  };
  const bounded = <T>(what: string, call: Promise<T>) => within(clock, storeTimeoutMs, 'STORE_UNAVAILABLE', what, call);

  const look = async (stream: string, group: readonly Unnumbered[]) => {
    const seen = await bounded('look', streams.look(stream, isDirect ? [] : group));
    const known = counters.get(stream);
    if (isSetBack(known, seen.state))
      throw new ToolkitError(
        'RECORD_UNREADABLE',
        `the counter of stream ${stream} was set back, so that numbers would be given twice; where that is meant, delete it: a new one has a new epoch`,
      );
    remember(stream, seen.state);
    return seen;
  };

  /**
   * After a lost race the first entry speaks for all: a commit is there whole or not at all. All are looked at where it is there, where the
   * counter has not moved, so that one of them must have been what was refused, and now and then in any case.
   */
  const lookAfter = async (stream: string, rest: readonly Unnumbered[], before: CounterState | undefined, isRace: boolean) => {
    if (isRace && before && rest.length > 1) {
      const seen = await look(stream, rest.slice(0, 1));
      const hasMoved = 'version' in seen.state && !('version' in before && before.version === seen.state.version);
      if (hasMoved && !seen.entries[0]) return { ...seen, entries: rest.map(() => undefined) };
    }
    return await look(stream, rest);
  };

  return async (stream: string, group: readonly Unnumbered[]): Promise<Numbered> => {
    const untilMs = clock.monotonicMs() + storeTimeoutMs;
    // One instant for every try: what is sent again is sent as it was.
    const nowMs = clock.nowMs();
    const runId = isDirect ? system.randomId() : '';
    const sent = new Map<string, Entry>();
    /** Written by a commit of this call whose answer was lost. */
    const isOwn = ({ key, state, seq, nextAttemptAtMs }: Entry) => {
      const own = sent.get(key);
      return state === 'pending' && own?.seq === seq && own.nextAttemptAtMs === nextAttemptAtMs;
    };
    const refused = new Map<string, ToolkitError>();
    const old: Entry[] = [];
    const done = (): Numbered => ({ fresh: old.filter(isOwn), old: old.filter((entry) => !isOwn(entry)), refused });
    let rest = group;
    let planned: Numbering | undefined;
    let failure: unknown;
    for (let tries = 1; tries <= commitTries; tries++) {
      const state = counters.get(stream);
      if (state) {
        for (const one of rest) {
          const why = topicConflict(state, rest, one);
          if (why !== undefined) refused.set(one.key, malformed(why));
        }
        if (refused.size > 0) rest = rest.filter((one) => !refused.has(one.key));
        if (rest.length === 0) return done();
        planned = planNumbers(state, rest, { nowMs, handoffMs });
        failure = undefined;
        const sentAtMs = clock.monotonicMs();
        try {
          const written = isDirect ? { ...planned, counter: { ...planned.counter, runId }, entries: [] } : planned;
          const counter = await bounded('append', streams.append(stream, written));
          if (counter) {
            remember(stream, counter);
            return { fresh: planned.entries, old, refused };
          }
        } catch (error) {
          if (clock.monotonicMs() >= untilMs) throw error;
          failure = error;
        }
        for (const entry of planned.entries) sent.set(entry.key, entry);
        // By what a commit takes here: contenders that come back sooner only make each other lose.
        const tookMs = Math.max(clock.monotonicMs() - sentAtMs, 10);
        await pause(clock, jittered(system, Math.min(tookMs * tries, longestPauseMs)));
      }
      const seen = await lookAfter(stream, rest, state, failure === undefined && tries % fullLookEvery !== 0);
      // A commit of this call, and the last that was planned: with another version to start from the ones before are dead for ever.
      if (isDirect && planned && 'counter' in seen.state && seen.state.counter.runId === runId)
        return { fresh: planned.entries, old, refused };
      if (isDirect) continue;
      // One snapshot: an entry that is there has its number, whoever wrote it; the others were not committed.
      old.push(...seen.entries.filter((entry) => entry !== undefined));
      rest = rest.filter((_, index) => !seen.entries[index]);
      if (rest.length === 0) return done();
    }
    throw failure ?? new ToolkitError('STREAM_CONTENDED', `stream ${stream}: ${commitTries} commits lost against other publishers`);
  };
}
