export type RetryPolicy = {
  /** First try included; -1 for no limit. */
  readonly maxAttempts: number;
  /** From the first attempt on; 0 for no limit. */
  readonly maxRetryMs: number;
  readonly minBackoffMs: number;
  readonly maxBackoffMs: number;
  readonly maxDoublings: number;
};

/** What a target asks for that has too much to do; 0 where it names no time. */
export type Overload = { readonly retryAfterMs: number };

export type FailedTask = {
  readonly attempts: number;
  readonly createdAtMs: number;
  readonly firstAttemptAtMs: number;
  readonly nowMs: number;
  readonly overload?: Overload | undefined;
};

/** Cloud Tasks keeps no task longer than this. */
const taskLifeMs = 31 * 86_400_000;

/** Beyond these any wait has met its cap, and none of 0 has become infinite. */
const mostDoublings = 1_000;

/** The wait before a retry, counted from 1: it doubles `maxDoublings` times, then grows by its last step, up to the cap. */
export function backoffMs(retry: number, { minBackoffMs, maxBackoffMs, maxDoublings }: RetryPolicy): number {
  const doublings = Math.min(retry - 1, maxDoublings, mostDoublings);
  const steps = Math.max(retry - maxDoublings, 1);
  return Math.min(minBackoffMs * 2 ** doublings * steps, maxBackoffMs);
}

/** What becomes of a task after a failed attempt. It is given up only when the attempts and the retry time are both used up. */
export function decideRetry(task: FailedTask, policy: RetryPolicy): { kind: 'retry'; waitMs: number } | { kind: 'exhausted' } {
  const attemptsUsed = policy.maxAttempts !== -1 && task.attempts >= policy.maxAttempts;
  const timeUsed = policy.maxRetryMs === 0 || task.nowMs - task.firstAttemptAtMs >= policy.maxRetryMs;
  const waitMs = waitAfter(task, policy);
  if ((attemptsUsed && timeUsed) || task.nowMs + waitMs - task.createdAtMs >= taskLifeMs) return { kind: 'exhausted' };
  return { kind: 'retry', waitMs };
}

/** The service waits "higher" after an overload and documents no curve: here one step further, or what was asked for, up to the cap. */
function waitAfter({ attempts, overload }: FailedTask, policy: RetryPolicy): number {
  if (!overload) return backoffMs(attempts, policy);
  return Math.min(Math.max(backoffMs(attempts + 1, policy), overload.retryAfterMs), policy.maxBackoffMs);
}
