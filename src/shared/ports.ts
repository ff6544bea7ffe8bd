/** Time as the library sees it. Only shells and the emulator hold a real one. */
export type Clock = {
  /** Wall clock, ms since 1970. Never compared with an instant that a store wrote. */
  nowMs(): number;
  /** Ms that only go forward; for the holder's own view of its lease. */
  monotonicMs(): number;
  /** Runs once after the delay; returns the cancel. */
  after(delayMs: number, run: () => void): () => void;
};
