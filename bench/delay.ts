import { type Flow, openFlow } from './delay/flow.ts';
import { pending100kRssMb } from './delay/memory.ts';
import { printProfiles } from './delay/profile.ts';
import { enqueueRoundTrips } from './delay/round-trips.ts';
import { sides, startStack } from './delay/stack.ts';
import { benchmarkOf, type Figures, median, type Target } from './measure/figures.ts';
import { inTurn } from './measure/rounds.ts';

const targets = {
  enqueuePerSecond: { atLeast: 400 },
  releasePerSecond: { atLeast: 400 },
  latenessP99Ms: { atMost: 100 },
  earliestMs: { atLeast: 0 },
  pending100kRssMb: { atMost: 300 },
  enqueueRoundTrips: { atMost: 1 },
  enqueueRoundTripsLedger: { atMost: 2 },
} satisfies Record<string, Target>;

/** Of 4,000 messages: an even pace alone does not have V8 make its code within minutes. */
const warmUps = 2;

type Part = (repeats: number) => Promise<Figures>;

/** Over every message of every part. */
let earliestMs = Number.POSITIVE_INFINITY;

/** Each part starts its own processes and ends them. */
const parts: Readonly<Record<string, Part>> = {
  rates: withFlow(async (flow, repeats) => {
    const { plain, released, ledger, ledgerReleased } = await inTurn('messages enqueued and released a second', repeats, {
      plain: flow.enqueue.plain,
      released: flow.release,
      ledger: flow.enqueue.ledger,
      ledgerReleased: flow.release,
    });
    return {
      enqueuePerSecond: median(plain),
      releasePerSecond: median(released),
      enqueuePerSecondLedger: median(ledger),
      releasePerSecondLedger: median(ledgerReleased),
    };
  }),

  lateness: withFlow(async (flow, repeats) => {
    for (const side of sides) for (let round = 0; round < warmUps; round++) await flow.enqueue[side]().then(flow.release);
    const { plain, ledger } = await inTurn('ms that the 99th of 100 messages is late', repeats, flow.latenessP99);
    return { latenessP99Ms: median(plain), latenessP99MsLedger: median(ledger) };
  }),

  memory: async () => ({ pending100kRssMb: await pending100kRssMb() }),

  async roundTrips() {
    const { plain, ledger } = await enqueueRoundTrips();
    return { enqueueRoundTrips: plain, enqueueRoundTripsLedger: ledger };
  },
};

function withFlow(measure: (flow: Flow, repeats: number) => Promise<Figures>): Part {
  return async (repeats) => {
    const stack = await startStack();
    try {
      const flow = openFlow(stack);
      const figures = await measure(flow, repeats);
      earliestMs = Math.min(earliestMs, flow.earliestMs());
      return { ...figures, earliestMs };
    } finally {
      await stack.stop();
    }
  };
}

/** From a message to its task and from the task to the message, the built deployables in processes of their own. */
export const benchmark = benchmarkOf(parts, targets, printProfiles);
