import type { Faults } from '../faults.ts';
import { alreadyExists, failedPrecondition, notFound, status } from '../grpc.ts';
import type { Journal } from '../journal.ts';
import type { Time } from '../time.ts';
import { answerOf, type Outcome, overloadOf, requestOf } from './dispatch.ts';
import { toSeconds } from './instant.ts';
import type { QueueName } from './names.ts';
import { type QueueSettings, rateOf, retryPolicyOf } from './queue-settings.ts';
import { decideRetry } from './retry.ts';
import type { Sender } from './sender.ts';
import type { Attempt, Task } from './task.ts';
import { type Bucket, refill, takeToken } from './token-bucket.ts';
import type { Tombstones } from './tombstones.ts';
import { createWaiting } from './waiting.ts';

/** What a queue is besides its tasks. */
export type QueueState = { settings: QueueSettings; paused: boolean; purgedAtMs?: number };

export type QueueParts = {
  readonly time: Time;
  readonly faults: Faults;
  readonly journal: Journal;
  readonly appEngineUrl: string | undefined;
  readonly sender: Sender;
  readonly goneTasks: Tombstones;
};

export type Queue = ReturnType<typeof createQueue>;

export const queueKind = 'tasks queues';
export const taskKind = 'tasks tasks';

/** One queue: its tasks, each waiting for its instant, due, or being dispatched. */
export function createQueue(queueName: QueueName, state: QueueState, parts: QueueParts) {
  const { time, faults, journal, appEngineUrl, sender, goneTasks } = parts;
  const { name } = queueName;
  const tasks = new Map<string, Task>();
  const due = new Set<Task>();
  let bucket: Bucket = { tokens: state.settings.rateLimits.maxBurstSize, filledAtMs: time.nowMs() };
  let dispatching = 0;
  let stopped = false;
  let cancelWake = () => {};

  const note = () => journal.put(queueKind, name, state);
  const noteTask = (task: Task) => journal.put(taskKind, task.name, task);
  const ready = (task: Task) => {
    due.add(task);
    pump();
  };
  const waiting = createWaiting(time, ready);
  const schedule = (task: Task, dueAtMs: number) => {
    unschedule(task);
    task.dueAtMs = dueAtMs;
    noteTask(task);
    if (dueAtMs <= time.nowMs()) ready(task);
    else waiting.add(task, dueAtMs);
  };
  const unschedule = (task: Task) => {
    waiting.remove(task);
    due.delete(task);
  };
  const pump = () => {
    cancelWake();
    const { settings, paused } = state;
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
    noteTask(task);
    dispatching += 1;
    const sending = async (): Promise<Outcome> => {
      if (!request) return { kind: 'unreached', reason: 'no App Engine app is known' };
      const once = () => sender.send(request, task.dispatchDeadlineMs);
      if (faults.roll('double-dispatch', { resource: name })) void time.track(once());
      return once();
    };
    const settled = sending().then((outcome) => {
      dispatching -= 1;
      if (stopped) return;
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
    const overload = overloadOf(task.target, outcome, nowMs);
    const next = decideRetry({ attempts, createdAtMs, firstAttemptAtMs, nowMs, overload }, retryPolicyOf(state.settings));
    if (next.kind === 'exhausted') remove(task);
    else schedule(task, (calledAtMs ?? nowMs) + next.waitMs);
  };
  const remove = (task: Task) => {
    unschedule(task);
    tasks.delete(task.id);
    journal.delete(taskKind, task.name);
    goneTasks.add(task.name, time.nowMs());
  };
  /** The live task; a name that is gone answers FAILED_PRECONDITION where `gone` is not given. */
  const find = (id: string, gone = failedPrecondition): Task => {
    const task = tasks.get(id);
    if (task) return task;
    const taskName = `${name}/tasks/${id}`;
    if (goneTasks.has(taskName, time.nowMs()))
      throw gone(`The task ${taskName} no longer exists, though a task with this name existed recently.`);
    throw notFound(`Task does not exist: ${taskName}`);
  };

  return {
    name,
    queueName,
    note,
    settings: () => state.settings,
    tasks: () => tasks.values(),
    dispatching: () => dispatching,
    find,
    /** Refuses a name that is taken or was taken of late. */
    checkFree(id: string): void {
      if (tasks.has(id)) throw alreadyExists(`Requested entity already exists: ${name}/tasks/${id}`);
      if (goneTasks.has(`${name}/tasks/${id}`, time.nowMs())) {
        throw alreadyExists(`The task ${name}/tasks/${id} cannot be created because a task with this name existed too recently.`);
      }
    },
    add(task: Task): void {
      tasks.set(task.id, task);
      schedule(task, task.dueAtMs);
    },
    /** Takes over what the process before had; a task that it was dispatching is due again, since nobody knows what came of that. */
    restore(task: Task): void {
      tasks.set(task.id, task);
      const wasUnderWay = task.lastAttempt !== undefined && task.lastAttempt.answer === undefined;
      waiting.add(task, wasUnderWay ? Math.min(task.dueAtMs, time.nowMs()) : task.dueAtMs);
    },
    remove,
    /** Dispatches now, whatever the schedule, the pause and the limits say. */
    run(task: Task): void {
      unschedule(task);
      dispatch(task, time.nowMs());
    },
    configure(next: QueueSettings): void {
      state.settings = next;
      note();
      pump();
    },
    pause(): void {
      state.paused = true;
      note();
    },
    resume(): void {
      state.paused = false;
      note();
      pump();
    },
    /** Drops every task; what is being dispatched goes on and counts for nothing. */
    purge(): void {
      state.purgedAtMs = time.nowMs();
      note();
      cancelWake();
      for (const task of [...tasks.values()]) remove(task);
    },
    /** Leaves everything as it stands, for good: what comes of a dispatch under way is not recorded. */
    stop(): void {
      stopped = true;
      cancelWake();
      waiting.stop();
      due.clear();
    },
    /** google.cloud.tasks.v2.Queue */
    message: () => ({
      name,
      ...state.settings,
      state: state.paused ? ('PAUSED' as const) : ('RUNNING' as const),
      purgeTime: state.purgedAtMs === undefined ? null : toSeconds(state.purgedAtMs),
    }),
  };
}
