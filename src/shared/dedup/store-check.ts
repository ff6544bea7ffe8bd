import { ToolkitError } from '../errors.ts';
import type { RecordStore, System, Version } from '../ports.ts';
import { within } from '../waiting.ts';
import type { DedupRecord } from './decide.ts';

const keepMs = 60_000;
const answerTimeoutMs = 10_000;

/**
 * Asks a store at start what dedup rests on: of two claims of one key the second is refused and told the first, and a version that is
 * over writes nothing. A client that ignores what it does not know would be found by the first message that runs twice.
 * @throws INVALID_SETTINGS saying what failed; STORE_UNAVAILABLE
 */
export async function checkStore(store: RecordStore<DedupRecord>, { clock, randomId }: System): Promise<void> {
  const [key, first, second] = [`ptk-check~${randomId()}`, randomId(), randomId()];
  const answer = <T>(what: string, work: Promise<T>) => within(clock, answerTimeoutMs, 'STORE_UNAVAILABLE', what, work);
  /** The version written, or what stood in the way; a client that repeats a write by itself may report its own as a conflict. */
  const put = async (runId: string, rev: number, expected: Version | 'absent') => {
    const result = await answer('put', store.put(key, probe(runId, rev, clock.nowMs()), expected, keepMs));
    if ('version' in result) return result;
    const { record, version } = result.conflict ?? {};
    return record?.runId === runId && record.rev === rev && version !== undefined ? { version } : result;
  };
  const must: (holds: boolean, fault: string) => asserts holds = (holds, fault) => {
    if (!holds) throw new ToolkitError('INVALID_SETTINGS', `the record store fails its check: ${fault}`);
  };

  const claimed = await put(first, 1, 'absent');
  must('version' in claimed, 'a key that nobody has used cannot be claimed');
  const refused = await put(second, 1, 'absent');
  must('conflict' in refused, 'a claimed key was claimed again');
  const { record, nowMs = 0, writtenAtMs = Number.NaN } = refused.conflict ?? {};
  must(record?.runId === first, 'the loser of a claim is not told who won');
  must(nowMs >= writtenAtMs && nowMs < writtenAtMs + keepMs, `its clock reads ${nowMs} just after a write at ${writtenAtMs}`);
  const renewed = await put(first, 2, claimed.version);
  must('version' in renewed, 'a write with the stored version was refused');
  must('conflict' in (await put(second, 3, claimed.version)), 'a write with a version that is over was taken');
  const stored = await answer('get', store.get(key));
  must(stored?.version === renewed.version && stored.record.rev === 2, 'a read does not show the last write');
}

const probe = (runId: string, rev: number, firstSeenAtMs: number): DedupRecord => ({
  v: 1,
  rev,
  state: 'running',
  runId,
  attempts: 1,
  leaseMs: keepMs,
  ttlMs: keepMs,
  key: 'ptk-check',
  fingerprint: '',
  supersedes: null,
  seqRef: null,
  messageId: '',
  originId: '',
  firstSeenAtMs,
  result: null,
});
