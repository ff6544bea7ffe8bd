import type { Faults } from '../faults.ts';
import { alreadyExists, failedPrecondition, notFound, status } from '../grpc.ts';
import type { Time } from '../time.ts';
import { answerOf, type Outcome, requestOf, send } from './dispatch.ts';
import { toSeconds } from './instant.ts';
import type { QueueName } from './names.ts';
import { type QueueSettings, rateOf, retryPolicyOf } from './queue-settings.ts';
import { decideRetry } from './retry.ts';
import type { Attempt, Task } from './task.ts';
import { type Bucket, refill, takeToken } from './token-bucket.ts';
import { createTombstones } from './tombstones.ts';

export type QueueParts = {
  readonly time: Time;
  readonly faults: Faults;
  readonly appEngineUrl: string | undefined;
  readonly tombstoneMs: number;
  /** Ends what is being dispatched. */
  readonly closing: AbortSignal;
};

export type Queue = ReturnType<typeof createQueue>;

/** One queue: its tasks, each waiting for its instant, due, or being dispatched, and the names of those that are gone. */
export function createQueue(queueName: QueueName, settings: QueueSettings, parts: QueueParts) {
  const { time, faults, appEngineUrl, closing } = parts;
  const { name } = queueName;
  const tasks = new Map<string, Task>();
  const timers = new Map<Task, () => void>();
  const due = new Set<Task>();
  const tombstones = createTombstones(parts.tombstoneMs);
  let bucket: Bucket = { tokens: settings.rateLimits.maxBurstSize, filledAtMs: time.nowMs() };
  let dispatching = 0;
  let paused = false;
  let purgedAtMs: number | undefined;
  let cancelWake = () => {};

  const schedule = (task: Task, dueAtMs: number) => {
    unschedule(task);
    task.dueAtMs = dueAtMs;
    const ready = () => {
      timers.delete(task);
      due.add(task);
      pump();
    };
    if (dueAtMs <= time.nowMs()) ready();
    else timers.set(task, time.at(dueAtMs, ready));
  };
  const unschedule = (task: Task) => {
    timers.get(task)?.();
    timers.delete(task);
    due.delete(task);
  };
  const pump = () => {
    cancelWake();
    bucket = refill(bucket, rateOf(settings), time.nowMs());
    for (const task of due) {
      if (paused || dispatching >= settings.rateLimits.maxConcurrentDispatches) return;
      const token = takeToken(bucket, rateOf(settings));
      if (token.kind === 'wait') {
        cancelWake = time.at(token.untilMs, pump);
        return;
      }
      bucket = token.bucket;
      due.delete(task);
      dispatch(task);
    }
  };
  const dispatch = (task: Task, calledAtMs?: number) => {
    const request = requestOf(task, queueName, appEngineUrl);
    const attempt = { scheduledAtMs: task.dueAtMs, dispatchedAtMs: time.nowMs() };
    task.firstAttemptAtMs ??= attempt.dispatchedAtMs;
    task.lastAttempt = attempt;
    task.dispatchCount += 1;
    dispatching += 1;
    const sending = async (): Promise<Outcome> => {
      if (!request) return { kind: 'unreached', reason: 'no App Engine app is known' };
      const once = () => send(request, task.dispatchDeadlineMs, time, closing);
      if (faults.roll('duplicate', { resource: name })) void time.track(once());
      return once();
    };
    const settled = sending().then((outcome) => {
      dispatching -= 1;
      if (tasks.get(task.id) === task) record(task, attempt, outcome, calledAtMs);
      pump();
    });
    void time.track(settled);
  };
  const record = (task: Task, attempt: Attempt, outcome: Outcome, calledAtMs: number | undefined) => {
    const nowMs = time.nowMs();
    const answered = outcome.kind === 'answered';
    const answer = answerOf(outcome);
    task.lastAttempt = { ...attempt, answer, ...(answered && { respondedAtMs: nowMs }) };
    task.previousResponse = answered ? outcome.status : undefined;
    if (answered) task.responseCount += 1;
    if (answer.code === status.OK) return remove(task);
    const { dispatchCount: attempts, createdAtMs, firstAttemptAtMs = nowMs } = task;
    const next = decideRetry({ attempts, createdAtMs, firstAttemptAtMs, nowMs }, retryPolicyOf(settings));
    if (next.kind === 'exhausted') remove(task);
    else schedule(task, (calledAtMs ?? nowMs) + next.waitMs);
  };
  const remove = (task: Task) => {
    unschedule(task);
    tasks.delete(task.id);
    tombstones.add(task.id, time.nowMs());
  };
  /** The live task; a name that is gone answers FAILED_PRECONDITION where `gone` is not given. */
  const find = (id: string, gone = failedPrecondition): Task => {
    const task = tasks.get(id);
    if (task) return task;
    if (tombstones.has(id, time.nowMs()))
      throw gone(`The task ${name}/tasks/${id} no longer exists, though a task with this name existed recently.`);
    throw notFound(`Task does not exist: ${name}/tasks/${id}`);
  };

  return {
    name,
    queueName,
    settings: () => settings,
    tasks: () => tasks.values(),
    find,
    /** Refuses a name that is taken or was taken of late. */
    checkFree(id: string): void {
      if (tasks.has(id)) throw alreadyExists(`Requested entity already exists: ${name}/tasks/${id}`);
      if (tombstones.has(id, time.nowMs())) {
        throw alreadyExists(`The task ${name}/tasks/${id} cannot be created because a task with this name existed too recently.`);
      }
    },
    add(task: Task): void {
      tasks.set(task.id, task);
      schedule(task, task.dueAtMs);
    },
    remove,
    /** Dispatches now, whatever the schedule, the pause and the limits say. */
    run(task: Task): void {
      unschedule(task);
      dispatch(task, time.nowMs());
    },
    configure(next: QueueSettings): void {
      settings = next;
      pump();
    },
    pause(): void {
      paused = true;
    },
    resume(): void {
      paused = false;
      pump();
    },
    /** Drops every task; what is being dispatched goes on and counts for nothing. */
    purge(): void {
      purgedAtMs = time.nowMs();
      cancelWake();
      for (const task of [...tasks.values()]) remove(task);
    },
    /** google.cloud.tasks.v2.Queue */
    message: () => ({
      name,
      ...settings,
      state: paused ? 'PAUSED' : 'RUNNING',
      purgeTime: purgedAtMs === undefined ? null : toSeconds(purgedAtMs),
    }),
  };
}
