import type { Message } from '../message.ts';
import type { Clock, Context } from '../ports.ts';
import { nack, type Verdict } from '../verdict.ts';
import type { Place } from './store.ts';

/** Who is answered for a run: a delivery that is not acked until nothing of what it stands for is left behind. */
export type Standing = {
  readonly place: Place;
  readonly context: Context;
  /** What it is answered with, unless what it stands for goes wrong. */
  verdict: Verdict;
  settle(verdict: Verdict): void;
};

/** A number with its message, and its delivery where that is in hand. */
export type Item = { readonly place: Place; readonly message: Message; readonly delivery: Standing | undefined };

/** A delivery in this process, until it has its verdict. */
export type Seat = Standing & {
  readonly message: Message;
  readonly answer: Promise<Verdict>;
  /** Waits to be taken by a run of this process, or called to look for itself, `over` once its time is or its signal aborts. */
  wait(waitMs: number): Promise<'answered' | 'again' | 'over'>;
  leave(): void;
};

/**
 * The deliveries of this process by stream, so that whoever holds a stream takes the next number from here, and a stream goes by neither
 * park nor back-off.
 */
export type Hands = {
  /** Taken before the cursor is read: what happens after the read is not missed. */
  sit(place: Place, message: Message, context: Context): Seat;
  /** The delivery of a number that waits; from here on a run answers it. */
  take(place: Place): Seat | undefined;
  /** Those up to this number look again. */
  call(stream: string, upTo: number): void;
  /** Whether a run of this process goes on in the stream. */
  isRunning(stream: string): boolean;
  running<T>(stream: string, run: () => Promise<T>): Promise<T>;
  /** How many wait. */
  waiting(): number;
};

/** Only the lowest of a stream looks at the cursor by itself: the others are behind it. */
const pollMs = 250;

type Taken = Seat & { state: 'looking' | 'waiting' | 'taken'; isCalled: boolean; wake: () => void };
type Stream = { readonly seats: Set<Taken>; runs: number };

export function createHands(clock: Clock): Hands {
  const streams = new Map<string, Stream>();
  let waiting = 0;
  const streamOf = (name: string): Stream => {
    const known = streams.get(name) ?? { seats: new Set<Taken>(), runs: 0 };
    streams.set(name, known);
    return known;
  };
  const forget = (name: string, { seats, runs }: Stream) => {
    if (seats.size === 0 && runs === 0) streams.delete(name);
  };
  const isLowest = ({ place }: Taken, { seats }: Stream): boolean => {
    for (const seat of seats) if (seat.state === 'waiting' && seat.place.seq < place.seq) return false;
    return true;
  };

  /** True when it was woken, false when the time is over. */
  const woken = (seat: Taken, waitMs: number): Promise<boolean> =>
    new Promise((resolve) => {
      const cancel = clock.after(waitMs, () => resolve(false));
      seat.wake = () => {
        cancel();
        resolve(true);
      };
    });

  return {
    sit(place, message, context) {
      const stream = streamOf(place.stream);
      let answer: (verdict: Verdict) => void = () => {};
      const seat: Taken = {
        place,
        message,
        context,
        verdict: nack('inProgress'),
        answer: new Promise((resolve) => {
          answer = resolve;
        }),
        state: 'looking',
        isCalled: false,
        wake: () => {},
        settle(verdict) {
          answer(verdict);
          seat.state = 'taken';
          seat.wake();
        },
        async wait(waitMs) {
          const untilMs = clock.monotonicMs() + waitMs;
          const { signal } = context;
          const stop = () => seat.wake();
          signal.addEventListener('abort', stop, { once: true });
          seat.state = 'waiting';
          waiting += 1;
          try {
            for (;;) {
              const leftMs = untilMs - clock.monotonicMs();
              if (signal.aborted || leftMs <= 0) return 'over';
              if (seat.isCalled) return 'again';
              const isDue = !(await woken(seat, Math.min(leftMs, pollMs)));
              // Set by `take` meanwhile: the run that has it answers it.
              if ((seat.state as Taken['state']) === 'taken') return 'answered';
              if (isDue && stream.runs === 0 && isLowest(seat, stream)) return 'again';
            }
          } finally {
            waiting -= 1;
            seat.isCalled = false;
            if ((seat.state as Taken['state']) === 'waiting') seat.state = 'looking';
            signal.removeEventListener('abort', stop);
          }
        },
        leave() {
          stream.seats.delete(seat);
          forget(place.stream, stream);
        },
      };
      stream.seats.add(seat);
      return seat;
    },
    take({ stream, epoch, seq }) {
      for (const seat of streams.get(stream)?.seats ?? []) {
        if (seat.state !== 'waiting' || seat.place.seq !== seq || seat.place.epoch !== epoch || seat.context.signal.aborted) continue;
        seat.state = 'taken';
        seat.wake();
        return seat;
      }
      return undefined;
    },
    call(stream, upTo) {
      for (const seat of streams.get(stream)?.seats ?? []) {
        if (seat.place.seq > upTo || seat.state === 'taken') continue;
        seat.isCalled = true;
        seat.wake();
      }
    },
    isRunning: (stream) => (streams.get(stream)?.runs ?? 0) > 0,
    async running(name, run) {
      const stream = streamOf(name);
      stream.runs += 1;
      try {
        return await run();
      } finally {
        stream.runs -= 1;
        forget(name, stream);
      }
    },
    waiting: () => waiting,
  };
}
