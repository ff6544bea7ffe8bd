import type { Book } from '../book.ts';
import { type Cell, expectedOf } from './cells.ts';
import { type Crew, isThrough } from './lives.ts';
import { type Call, type CallAnswer, dataOf, everyMs, instants, keyOf, leaseMs } from './plan.ts';
import type { Stage } from './stage.ts';

export type Round = {
  readonly stage: Stage;
  readonly book: Book<Cell>;
  readonly name: string;
  readonly cells: readonly Cell[];
  readonly crew: Crew;
};

/** Fewer than one subscription pushes at once. */
const messagesOfSource = 45;
const tries = 10;

/** All cells beside each other, from the same begin on: they are delayed, changed by calls, and released, and at each the crew ends. */
export async function playRound(round: Round): Promise<void> {
  const { stage, cells, crew } = round;
  const { front } = stage;
  const beginMs = await stage.nowMs();
  const at = (name: keyof typeof instants) => beginMs + instants[name];
  const quiet = (what: string) => stage.until(`${round.name}: ${what}`, stage.isQuiet);
  front.know(cells);
  for (const cell of cells) cell.expected = expectedOf(cell, beginMs);

  const functions = await crew.open('function');
  await publishAll(round, beginMs);
  await stage.until(`${round.name}: stopped in the function`, () => isThrough(functions));
  await crew.end(functions);
  await quiet('all messages scheduled');

  const clients = await crew.open('client');
  const called = cells.filter(({ given }) => given.call);
  const firstCalls = called.map((cell) => front.post(cell, '/call', callOf(cell, beginMs)));
  await stage.until(`${round.name}: stopped in a call`, () => isThrough(clients));
  await crew.end(clients);
  await Promise.all(firstCalls);
  await Promise.all(called.map((cell) => settleCall(round, cell, beginMs)));

  const hops = await crew.open('hop');
  await stage.leapTo(at('early'));
  await stage.until(`${round.name}: stopped in a hop`, () => isThrough(hops));
  await crew.end(hops);
  await quiet('all hops made');

  await stage.leapTo(at('repair'));
  await stage.until(`${round.name}: nothing to repair`, () => repaired(round));
  await stage.leapTo(at('sooner'));
  await quiet('what was rescheduled is released');

  const releases = await crew.open('release');
  await stage.leapTo(at('due'));
  await stage.until(`${round.name}: stopped in the release`, () => isThrough(releases));
  const [before = [], after = []] = alternately(cells.filter(({ given }) => given.isCancelledLate));
  await Promise.all(before.map((cell) => cancelLate(round, cell)));
  await crew.end(releases);
  // Other processes meet what the dead ones hold, and only then its lease ends.
  await stage.pass(700);
  await Promise.all(after.map((cell) => cancelLate(round, cell)));
  await stage.leapTo((await stage.nowMs()) + leaseMs);
  await quiet('all is released');

  await stage.leapTo(at('nextOccurrence'));
  await quiet('the next occurrences are released');
  const recurring = cells.filter(({ given }) => given.isRecurring);
  await Promise.all(recurring.map((cell) => endRecurrence(round, cell)));
  await stage.leapTo(at('nextOccurrence') + everyMs);
  await stage.until(`${round.name}: nothing is left`, stage.isEmpty);
}

async function publishAll({ stage, name, cells, ...round }: Round, beginMs: number): Promise<void> {
  let source = '';
  let room = 0;
  const sent: Promise<unknown>[] = [];
  for (const cell of cells) {
    const { given } = cell;
    if (given.isRecurring) {
      const call: Call = { ...callTo(cell), kind: 'schedule', dueAtMs: beginMs + instants.due, everyMs };
      sent.push(asked({ stage, name, cells, ...round }, cell, call));
    }
    if (room < given.messages.length) {
      source = `${name}-${sent.length}`.replaceAll(' ', '-');
      room = messagesOfSource;
      await stage.openSource(source);
    }
    room -= given.messages.length;
    sent.push(publishCell(stage, source, cell, beginMs));
  }
  await Promise.all(sent);
}

/** One after the other, so that the last one has the highest id. */
async function publishCell(stage: Stage, source: string, { cell, given, topic }: Cell, beginMs: number): Promise<void> {
  for (const [index, { due, isLarge = false }] of given.messages.entries()) {
    const number = index + 1;
    const key = keyOf(cell, number);
    await stage.publish(source, dataOf(key, isLarge), {
      cell,
      index: String(index),
      'ptk-key': key,
      'ptk-target': topic,
      'ptk-deliver-at': new Date(beginMs + instants[due]).toISOString(),
      ...(given.hasLedger && { 'ptk-delay-id': cell }),
      ...(given.isNumbered && { 'ptk-stream': cell, 'ptk-seq': String(number), 'ptk-epoch': '1' }),
    });
  }
}

const callTo = ({ cell, given, topic }: Cell) => ({ id: cell, key: keyOf(cell, given.messages.length + 1), topic });

function callOf(cell: Cell, beginMs: number): Call {
  const { call } = cell.given;
  if (!call) throw new Error(`${cell.cell} has no call`);
  return call.kind === 'cancel'
    ? { ...callTo(cell), ...call }
    : { ...callTo(cell), kind: call.kind, dueAtMs: beginMs + instants[call.due] };
}

/** A call that nothing stops; a client asks again where it gets an error. */
async function asked({ stage, book }: Round, cell: Cell, call: Call): Promise<CallAnswer> {
  for (let attempt = 1; attempt <= tries; attempt++) {
    const answer = await stage.front.post<CallAnswer>(cell, '/call', call);
    if (answer) return answer;
  }
  book.lost(cell, `${call.kind} failed ${tries} times`);
  return {};
}

/** What the entry says when the first call is over, or was asked again, is to happen. */
async function settleCall(round: Round, cell: Cell, beginMs: number): Promise<void> {
  const call = callOf(cell, beginMs);
  const to = callTo(cell);
  if (cell.asksAgain) {
    const { outcome, key, dueAtMs } = await asked(round, cell, call);
    const expected = { schedule: undefined, reschedule: 'rescheduled', cancel: 'cancelled', get: undefined }[call.kind];
    if (outcome !== expected) round.book.lost(cell, `${call.kind} was answered ${outcome}, expected ${expected}`);
    if (call.kind === 'schedule' && (key !== call.key || dueAtMs !== call.dueAtMs))
      round.book.lost(cell, `schedule was answered ${key} at ${dueAtMs}, expected ${call.key} at ${call.dueAtMs}`);
  }
  const { state, key = '', dueAtMs = 0 } = await asked(round, cell, { ...to, kind: 'get' });
  cell.expected = new Map(state === 'pending' ? [[key, dueAtMs]] : []);
  const isDone = key === call.key || state === 'cancelled' || (call.kind === 'reschedule' && dueAtMs === call.dueAtMs);
  if (cell.asksAgain && !isDone) round.book.lost(cell, `the entry is ${state}, ${key} at ${dueAtMs} after ${call.kind} was answered`);
}

/** Those that are cancelled before the end of their release, and after it. */
const alternately = (cells: readonly Cell[]) =>
  [0, 1].map((turn) => cells.filter(({ given }, index) => (given.goesOn ? 0 : index % 2) === turn));

/** What is answered while, or after, the release has died holds. */
async function cancelLate(round: Round, cell: Cell): Promise<void> {
  const { outcome } = await asked(round, cell, { ...callTo(cell), kind: 'cancel' });
  if (outcome === 'cancelled') cell.expected = new Map();
  else if (outcome !== 'tooLate') round.book.lost(cell, `cancel was answered ${outcome}`);
}

async function endRecurrence(round: Round, cell: Cell): Promise<void> {
  const { outcome } = await asked(round, cell, { ...callTo(cell), kind: 'cancel' });
  if (outcome !== 'cancelled') round.book.lost(cell, `the cancel of its recurrence was answered ${outcome}`);
}

/** Two repairs at once; whether both found nothing to do. */
async function repaired({ stage, cells }: Round): Promise<boolean> {
  const [any] = cells.filter(({ without, given }) => without === 'nothing' && !given.isUnrepaired);
  if (!any) return true;
  const repair = () => stage.front.post<{ rearmed: number; failed: number }>(any, '/repair');
  const both = await Promise.all([repair(), repair()]);
  return both.every((each) => each && each.rearmed + each.failed === 0);
}
