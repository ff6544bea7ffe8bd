import type { Time } from '../time.ts';

export type IdleTimer = {
  /** It is used now. */
  touch(): void;
  /** The time to live changed. */
  follow(): void;
  stop(): void;
};

export type IdleParts = {
  readonly time: Time;
  /** Undefined where it never runs out. */
  readonly ttlMs: () => number | undefined;
  /** Whether it is in use without a break. */
  readonly isInUse: () => boolean;
  readonly expired: () => void;
};

/** Runs out once nothing has used a thing for its time to live. One timer, which looks again where there was a use meanwhile. */
export function idleTimer({ time, ttlMs, isInUse, expired }: IdleParts): IdleTimer {
  let usedAtMs = time.nowMs();
  let cancel = () => {};
  const touch = () => {
    usedAtMs = time.nowMs();
  };
  const look = () => {
    const ttl = ttlMs();
    if (ttl === undefined) return;
    if (isInUse()) touch();
    if (usedAtMs + ttl <= time.nowMs()) expired();
    else cancel = time.at(usedAtMs + ttl, look);
  };
  const follow = () => {
    cancel();
    look();
  };
  follow();
  return { touch, follow, stop: () => cancel() };
}
