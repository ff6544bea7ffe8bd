import type { Cell } from './cells.ts';
import type { Doomed } from './lives.ts';
import { leaveToRelay, publisherCell, relayCell } from './senders.ts';
import type { Stage } from './stage.ts';
import { keepsItsAcks, publishCells, type Steps, stepsOf, stepsOfCell, subscriberCells, walkedCells } from './subscribers.ts';

/** So often each await is met with a kill. */
const rounds = { publisher: 20, relay: 5, pull: 2, push: 1 } as const;
const shortRounds = { publisher: 1, relay: 1, pull: 1, push: 1 } as const;

/** What each role awaits on its way, in its order. */
export type Ways = {
  readonly publisher: readonly string[];
  readonly withoutOutbox: readonly string[];
  readonly relay: readonly string[];
  readonly subscriber: Steps;
  /** Where an ack may have been too late to be sent. */
  readonly topics: readonly string[];
};

/** Goes through every way once, in a process of its own, without a stop. */
export async function walk(stage: Stage): Promise<Ways> {
  const publishers = [publisherCell({ stop: 'nowhere' }), publisherCell({ stop: 'nowhere', without: 'the outbox' })] as const;
  const relay = relayCell({ stop: 'nowhere' });
  const [topics] = await Promise.all([publishCells(stage, 'walked', walkedCells), leaveToRelay(stage, [relay])]);
  const worker = await stage.start('walker', {
    mode: 'walk',
    publishers: publishers.map(({ sender }) => sender),
    relays: [relay.sender],
    subscriptions: topics,
  });
  const [publisher = [], withoutOutbox = [], relayed = []] = await Promise.all(
    [...publishers, relay].map(({ cell }) => stepsOfCell(worker, cell.cell)),
  );
  const ways = { publisher, withoutOutbox, relay: relayed, subscriber: await stepsOf(worker), topics };
  await stage.end(worker);
  return ways;
}

/** All cells with the processes in which they stop. */
export function doomedProcesses(ways: Ways, short: boolean, chosen: (cell: Cell) => boolean): Doomed[] {
  const times = short ? shortRounds : rounds;
  const ofRounds = (count: number, name: string, cellsOf: (round: number) => Partial<Doomed>) =>
    Array.from({ length: count }, (_, round): Doomed => ({ ...nothing, ...cellsOf(round), name: `${name}-${round}` }));
  const all = [
    ...ofRounds(times.publisher, 'publisher', (round) => ({
      publishers: [
        ...ways.publisher.map((stop) => publisherCell({ stop, round })),
        ...(round === 0 ? ways.withoutOutbox.map((stop) => publisherCell({ stop, without: 'the outbox', round })) : []),
      ],
    })),
    ...ofRounds(times.relay, 'relay', (round) => ({ relays: ways.relay.map((stop) => relayCell({ stop, round })) })),
    ...ofRounds(times.pull, 'pull', (round) => ({ subscribers: subscriberCells('pull', ways.subscriber, round, short) })),
    ...ofRounds(times.push, 'push', (round) => ({ subscribers: subscriberCells('push', ways.subscriber, round, short) })),
  ].map(
    (doomed): Doomed => ({
      name: doomed.name,
      publishers: doomed.publishers.filter(({ cell }) => chosen(cell)),
      relays: doomed.relays.filter(({ cell }) => chosen(cell)),
      subscribers: doomed.subscribers.filter(({ cell }) => chosen(cell)),
    }),
  );
  const keeping = merged('acks', all, keepsItsAcks);
  const others = all.map((each): Doomed => ({ ...each, subscribers: each.subscribers.filter((cell) => !keepsItsAcks(cell)) }));
  return [keeping, ...(short ? [merged('all', others)] : others)].filter(
    ({ publishers, relays, subscribers }) => publishers.length + relays.length + subscribers.length > 0,
  );
}

const nothing = { publishers: [], relays: [], subscribers: [] } as const;

/** One process for all; of those subscribers alone where a choice is given. */
const merged = (name: string, all: readonly Doomed[], choice?: typeof keepsItsAcks): Doomed => ({
  name,
  publishers: choice ? [] : all.flatMap(({ publishers }) => publishers),
  relays: choice ? [] : all.flatMap(({ relays }) => relays),
  subscribers: all.flatMap(({ subscribers }) => (choice ? subscribers.filter(choice) : subscribers)),
});
