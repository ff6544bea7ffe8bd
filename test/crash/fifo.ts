import { parseArgs } from 'node:util';
import { seededRandom } from '../../src/emulator/server.ts';
import { attribute } from '../../src/shared/message.ts';
import { type Book, createBook } from './fifo/book.ts';
import type { Cell } from './fifo/cells.ts';
import { judgeCopies } from './fifo/copies.ts';
import { killedLives, type Life } from './fifo/lives.ts';
import { type Load, pairPart } from './fifo/pair.ts';
import { pausedPart } from './fifo/paused.ts';
import { deadTopic } from './fifo/plan.ts';
import { isRun, numberRaces, outboxes, races, raceTopic } from './fifo/race.ts';
import { doomedProcesses, walk } from './fifo/rounds.ts';
import { lossyRelayTopic, publishAgain, publisherTopic, relayTopic, type SentCell } from './fifo/senders.ts';
import { lostAnswers, openStage, type Recorded, type Stage } from './fifo/stage.ts';
import { publishFurther } from './fifo/subscribers.ts';
import { openWaiting, waitingPart, waitingTopic } from './fifo/waiting.ts';
import type { CrashTest } from './figures.ts';
import { holds, timing } from './timing.ts';

const load: Load = { messages: 500, streams: 3, kills: 6 };
const shortLoad: Load = { messages: 120, streams: 3, kills: 2 };
const [predecessorMs, shortPredecessorMs] = [20_000, 5_000];
const longestMs = 240_000;
const furtherTopic = 'lossy-further';
const controls = [
  'the outbox',
  'the lease of the relay',
  'the version of the cursor',
  'the look behind the head',
  'the park in the commit',
  'parking',
] as const satisfies readonly Cell['without'][];

/**
 * Publishers, relays and subscribers killed at each await, whichever those are; two subscribers that are killed and replaced; a paused one;
 * messages that wait; while answers are lost. `--short` kills two processes with all that the long form kills one by one.
 */
export const crashTest: CrashTest = async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: { seed: { type: 'string' }, cells: { type: 'string', default: '' }, short: { type: 'boolean', default: false } },
  });
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`seed ${seed}`);
  const random = seededRandom(seed);
  const chosen = ({ cell }: Cell) => cell.includes(values.cells);
  const isChosen = (name: string) => name.includes(values.cells);
  const stage = await openStage();
  const book = createBook(stage.sink);
  const mark = timing();
  try {
    await Promise.all([publisherTopic, relayTopic, lossyRelayTopic, furtherTopic].map((name) => stage.open(name)));
    const recorded = [relayTopic, raceTopic, deadTopic].map((topic) => stage.record(topic));
    const [relayed = [], raced = [], dead = [], nacked = []] = await Promise.all([...recorded, openWaiting(stage)]);
    const ways = await walk(stage);
    mark('every way gone through once');
    await stage.setFaults(lostAnswers);
    const doomed = doomedProcesses(ways, values.short, chosen);
    await numberRaces(stage);
    const lives = await killedLives(stage, book, doomed, random);
    mark(`${lives.length} workers killed`);
    const early = (index: number) => index % 2 === 0;
    const sent = lives.flatMap((life) => life.publishers.map((each) => ({ ...each, told: toldBy(life) })));
    await Promise.all(sent.map((each, index) => early(index) && called(stage, book, each, each.told)));
    await startHeirs(stage, lives, ways.topics);
    const killed = lives
      .flatMap(({ publishers, relays, subscribers }) => [...publishers, ...relays, ...subscribers])
      .map(({ cell }) => cell);
    const parts = () =>
      Promise.all([
        isChosen('pair') ? pairPart(stage, book, values.short ? shortLoad : load, random) : [],
        isChosen('paused') ? pausedPart(stage, book, furtherTopic) : [],
        isChosen('waiting') ? waitingPart(stage, values.short ? shortPredecessorMs : predecessorMs) : [],
      ]);
    const settled = () => handled(stage, book, killed);
    const [[pair, paused, waiting]] = await (values.short
      ? Promise.all([parts(), settled()])
      : settled().then(async () => [await parts()]));
    mark('heirs have gone on');
    await Promise.all([
      ...sent.map((each, index) => early(index) || called(stage, book, each, each.told)),
      ...lives.flatMap(({ relays }) => relays.map((each) => called(stage, book, each, new Map()))),
      ...lives.flatMap(({ subscribers }) => subscribers.map((each) => publishFurther(stage, furtherTopic, each))),
    ]);
    const all = [...killed, ...pair, ...paused, ...waiting];
    await holds(longestMs, () => isRun(raced));
    const unacked = await handled(stage, book, all);
    mark(`further messages handled, ${unacked} without an ack; deliveries: ${stage.verdicts()}`);
    for (const cell of all) book.judge(cell);
    for (const life of lives)
      for (const { cell, sender } of life.relays) if (sender.topic === relayTopic) judgeCopies(book, cell, relayed, 2);
    for (const { cell } of races) {
      book.seen(cell);
      judgeCopies(book, cell, raced, 1);
    }
    judgeLetters(book, all, [...dead, ...nacked]);
    book.print();
    const controlsCaught = book.printControls(controls);
    if (unacked > 0) throw new Error(`${unacked} messages were without an ack at the end`);
    const { lost, repeated } = book.broken();
    const cells = [...all, ...races.map(({ cell }) => cell)].filter(({ without }) => without === 'nothing').length;
    const figures = { cells, kills: stage.kills(), lost, undocumentedRepeats: repeated, controlsCaught };
    return { figures, controls: controls.length };
  } finally {
    await stage.close();
  }
};

/** The numbers that a publisher had told its callers before it was killed. */
const toldBy = ({ worker }: Life): ReadonlyMap<string, number> =>
  new Map(worker.lines.flatMap((line) => (line.said === 'numbered' ? [[line.key, line.sequence]] : [])));

async function called(stage: Stage, book: Book, each: SentCell, told: ReadonlyMap<string, number>): Promise<void> {
  for (const difference of await publishAgain(stage, each, told)) book.lost(each.cell, difference);
}

/** Two processes which go on with all that the dead have left. */
async function startHeirs(stage: Stage, lives: readonly Life[], walked: readonly string[]): Promise<void> {
  const subscriptions = [
    publisherTopic,
    relayTopic,
    lossyRelayTopic,
    furtherTopic,
    waitingTopic,
    ...walked,
    ...lives.flatMap(({ pulled }) => pulled),
  ];
  const plan = { outboxes, subscriptions, sweeps: ['swept', 'waiting'] };
  const [heir] = await Promise.all([stage.start('heir-1', { ...plan, takesPushes: true }), stage.start('heir-2', plan)]);
  await stage.pushTo(
    lives.flatMap(({ pushed }) => pushed),
    heir,
  );
}

/** Until every number was handled, those of controls apart, and nothing is left to ack; or the time is over, with so many messages left. */
async function handled(stage: Stage, book: Book, cells: readonly Cell[]): Promise<number> {
  const isAtEnd = ({ cell, last, dead }: Cell) => new Set(stage.sink.begins(cell).map(({ seq }) => seq)).size >= last - dead.length;
  const left = new Set(cells.filter(({ without }) => without === 'nothing'));
  await holds(longestMs, () => {
    for (const cell of left) if (isAtEnd(cell)) left.delete(cell);
    return left.size === 0;
  });
  let unacked = 0;
  await holds(longestMs, async () => {
    unacked = await stage.backlog();
    return unacked === 0;
  });
  for (const cell of cells) if (!isAtEnd(cell)) book.lost(cell, 'its stream stands still, with nothing left to ack');
  return unacked;
}

/** Poison is a dead letter, and nothing else is. */
function judgeLetters(book: Book, cells: readonly Cell[], letters: readonly Recorded[]): void {
  for (const cell of cells) {
    const ofCell = letters.filter(({ attributes }) => attributes[attribute.stream] === cell.cell);
    const seqs = ofCell.map(({ attributes }) => Number(attributes[attribute.sequence]));
    for (const seq of cell.dead) if (!seqs.includes(seq)) book.lost(cell, `poison number ${seq} is no dead letter`);
    for (const { attributes } of ofCell) {
      const { [attribute.sequence]: seq, [attribute.deadReason]: reason = 'policy', [attribute.deadDetail]: detail = '' } = attributes;
      if (!cell.dead.includes(Number(seq))) book.lost(cell, `healthy number ${seq} is a dead letter: ${reason} ${detail}`);
    }
  }
}
