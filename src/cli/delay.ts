import { calendar } from '../shared/adapters/calendar.ts';
import { system } from '../shared/adapters/system.ts';
import { planQueues } from '../shared/delay/decide.ts';
import { createDelays } from '../shared/delay/delays.ts';
import { createRepair } from '../shared/delay/repair.ts';
import { createDelayStatus, isOnTime } from '../shared/delay/status.ts';
import { connectPublisher } from '../shell/clients.ts';
import { connectDelay } from '../shell/delay-parts.ts';
import { lineLog } from '../shell/log.ts';
import { type Environment, readSettings } from '../shell/settings.ts';
import { type ConnectedCommand, delayCommandOf } from './delay/input.ts';
import { lineOfCancelled, lineOfDelayed, lineOfRescheduled, linesOfPlan, linesOfRepair, linesOfStatus, refusals } from './delay/lines.ts';

/** What is told: an object for programs, and the same in lines for people. */
type Tell = (answer: object, lines: readonly string[]) => void;

/**
 * Shows and changes what is delayed.
 * @returns the exit code: 1 where something is wrong (a queue stands still, an entry is overdue, a repair failed, too few queues were given) or
 * the command was refused
 */
export async function runDelay(args: string[], environment: Environment = process.env, print = console.log): Promise<number> {
  const command = delayCommandOf(args);
  const tell: Tell = (answer, lines) => {
    if (command.json) print(JSON.stringify({ delay: answer }));
    else for (const line of lines) print(line);
  };
  if (command.verb === 'plan') {
    const plan = planQueues(command.perSecond, command.queues);
    tell(plan, linesOfPlan(plan));
    return plan.isEnough ? 0 : 1;
  }
  const settings = readSettings('delayCommand', environment);
  const parts = await connectDelay(settings, environment);
  const { pubsub, publisher } = connectPublisher(settings);
  try {
    const log = lineLog((line) => process.stderr.write(line), 'warn', settings.GOOGLE_CLOUD_PROJECT);
    return await done(command, { ...parts, publisher, calendar, system, log }, tell);
  } finally {
    await Promise.all([parts.close(), pubsub.close()]);
  }
}

type Parts = Parameters<typeof createDelays>[0] & Parameters<typeof createDelayStatus>[0] & Parameters<typeof createRepair>[0];

async function done(command: ConnectedCommand, parts: Parts, tell: Tell): Promise<number> {
  const delays = createDelays(parts);
  const refused = (id: string, outcome: keyof typeof refusals) => {
    tell({ outcome }, [refusals[outcome](id)]);
    return 1;
  };
  switch (command.verb) {
    case 'status': {
      const status = await createDelayStatus(parts)(command.hours);
      tell(status, linesOfStatus(status));
      return isOnTime(status) ? 0 : 1;
    }
    case 'repair': {
      const repaired = await createRepair(parts)();
      tell(repaired, linesOfRepair(repaired));
      return repaired.failed > 0 ? 1 : 0;
    }
    case 'list': {
      for await (const delayed of delays.list(command.state)) tell(delayed, [lineOfDelayed(delayed)]);
      return 0;
    }
    case 'get': {
      const delayed = await delays.get(command.id);
      if (!delayed) return refused(command.id, 'unknown');
      tell(delayed, [lineOfDelayed(delayed)]);
      return 0;
    }
    case 'cancel': {
      // An id that is mistyped is cancelled too, and whoever mistyped it should hear of it.
      const wasKnown = (await delays.get(command.id)) !== undefined;
      const { outcome } = await delays.cancel(command.id);
      if (outcome === 'tooLate') return refused(command.id, outcome);
      tell({ outcome, wasKnown }, [lineOfCancelled(command.id, wasKnown)]);
      return 0;
    }
    case 'reschedule': {
      const end = await delays.reschedule(command.id, command.at);
      if (end.outcome !== 'rescheduled') return refused(command.id, end.outcome);
      tell(end, [lineOfRescheduled(command.id, end.dueAtMs, end.generation)]);
      return 0;
    }
  }
}
