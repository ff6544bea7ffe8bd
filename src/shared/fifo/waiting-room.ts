import type { Clock } from '../ports.ts';

export type Seat = {
  /** True when the stream has come as far as this number, false when the time is over first. Leaves the room. */
  turn(waitMs: number): Promise<boolean>;
  leave(): void;
};

/** Where deliveries of this process wait for their predecessors of this process, so that a stream does not go by back-off. */
export type WaitingRoom = {
  /** Taken before the cursor is read: what happens after the read is not missed. */
  sit(stream: string, sequence: number): Seat;
  /** The stream is free again, with this number as its last. */
  moved(stream: string, last: number): void;
};

type Waiting = { readonly sequence: number; readonly call: () => void };

export function createWaitingRoom(clock: Clock): WaitingRoom {
  const rooms = new Map<string, Set<Waiting>>();
  return {
    sit(stream, sequence) {
      const room = rooms.get(stream) ?? new Set();
      rooms.set(stream, room);
      let call = () => {};
      const called = new Promise<void>((resolve) => {
        call = resolve;
      });
      const waiting = { sequence, call };
      room.add(waiting);
      const leave = () => {
        room.delete(waiting);
        if (room.size === 0) rooms.delete(stream);
      };
      return {
        leave,
        async turn(waitMs) {
          let cancel = () => {};
          const over = new Promise<boolean>((resolve) => {
            cancel = clock.after(waitMs, () => resolve(false));
          });
          const mine = await Promise.race([called.then(() => true), over]);
          cancel();
          leave();
          return mine;
        },
      };
    },
    moved(stream, last) {
      for (const { sequence, call } of rooms.get(stream) ?? []) if (sequence <= last + 1) call();
    },
  };
}
