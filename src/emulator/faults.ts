/**
 * What may go wrong on purpose.
 *
 * - `duplicate`: a message is delivered a second time, with an ack id of its own
 * - `hold-back`: a delivery waits `holdMs`, so that later ones overtake it
 * - `fail-before`: a call answers UNAVAILABLE and is not applied
 * - `answer-lost`: a call is applied and answers UNAVAILABLE
 * - `abort-transaction`: a transactional commit answers ABORTED and is not applied
 */
export type FaultKind = 'duplicate' | 'hold-back' | 'fail-before' | 'answer-lost' | 'abort-transaction';

export type FaultRule = {
  readonly kind: FaultKind;
  /** Only this call, as `Publisher.Publish` or `Firestore.Commit`; every one when absent. Deliveries have no call. */
  readonly rpc?: string;
  /** Only where the resource name (topic, subscription, database, queue) contains this text. */
  readonly resource?: string;
  /** From 0 to 1; 1 when absent. */
  readonly probability?: number;
  /** How often the rule fires before it is used up; without end when absent. */
  readonly times?: number;
  /** Only for `hold-back`, which needs it: the longest wait; the actual one lies between a tenth of it and all of it. */
  readonly holdMs?: number;
};

export type FaultPlan = { readonly seed: number; readonly rules: readonly FaultRule[] };
export type FaultSite = { readonly rpc?: string; readonly resource?: string };

export type Faults = {
  readonly seed: number;
  /** The first rule of that kind which fits the site and whose die fell; its use is counted. */
  roll(kind: FaultKind, site: FaultSite): FaultRule | undefined;
  /** A number from 0 up to but not including 1, from the seed. */
  random(): number;
  /** Adds a rule in front of the others; returns its removal. */
  add(rule: FaultRule): () => void;
  /** Replaces every rule; the counts stay. */
  replace(rules: readonly FaultRule[]): void;
  /** How often each kind has fired so far. */
  counts(): Record<FaultKind, number>;
};

/** @throws Error for a rule that would count as fired and do nothing */
function armed(rule: FaultRule): { readonly rule: FaultRule; left: number } {
  if (rule.kind === 'hold-back' && !(rule.holdMs !== undefined && rule.holdMs > 0))
    throw new Error('a hold-back rule needs holdMs above 0');
  return { rule, left: rule.times ?? Number.POSITIVE_INFINITY };
}

export function createFaults(plan: FaultPlan = { seed: 1, rules: [] }): Faults {
  const random = seededRandom(plan.seed);
  let rules = plan.rules.map(armed);
  const counts: Record<FaultKind, number> = { duplicate: 0, 'hold-back': 0, 'fail-before': 0, 'answer-lost': 0, 'abort-transaction': 0 };
  return {
    seed: plan.seed,
    random,
    roll(kind, site) {
      for (const entry of rules) {
        const { rule } = entry;
        if (rule.kind !== kind || entry.left <= 0) continue;
        if (rule.rpc !== undefined && rule.rpc !== site.rpc) continue;
        if (rule.resource !== undefined && !site.resource?.includes(rule.resource)) continue;
        if (rule.probability !== undefined && random() >= rule.probability) continue;
        entry.left -= 1;
        counts[kind] += 1;
        return rule;
      }
      return undefined;
    },
    add(rule) {
      const entry = armed(rule);
      rules = [entry, ...rules];
      return () => {
        rules = rules.filter((other) => other !== entry);
      };
    },
    replace(next) {
      rules = next.map(armed);
    },
    counts: () => ({ ...counts }),
  };
}

/** Mulberry32: 32 bits of state are enough for dice, and the same seed gives the same run everywhere. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
