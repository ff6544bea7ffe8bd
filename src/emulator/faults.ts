/** What may go wrong on purpose. */
export const faultKinds = {
  duplicate: 'a published message is delivered twice, each time with an ack id of its own; not under exactly-once delivery',
  reorder: 'a published message waits a tenth to all of `delayMs`, so that later ones overtake it; not within an ordering key',
  delay: 'a published message waits `delayMs`; one with an ordering key takes the key with it',
  'drop-ack': 'an ack is answered with OK and not applied, so that the message comes again after its deadline',
  'refuse-ack':
    'the lease ends just before its ack arrives, which is stale then: refused under exactly-once delivery, else ignored; the message comes again',
  'redeliver-after-ack': 'an ack is applied, and the message is delivered once more; not under exactly-once delivery',
  'lost-push-answer': 'a push arrives and its answer does not, which is a nack',
  'double-dispatch': 'a task is sent twice at once',
  'fail-before': 'a call answers UNAVAILABLE and is not applied',
  'answer-lost': 'a call is applied and answers UNAVAILABLE',
  'slow-call': 'a call waits `delayMs` before it is applied',
  'close-stream': 'an open stream ends with UNAVAILABLE instead of sending an answer',
  'abort-transaction': 'a transactional commit answers ABORTED and is not applied',
} as const satisfies Record<string, string>;

export type FaultKind = keyof typeof faultKinds;

export type FaultRule = {
  readonly kind: FaultKind;
  /** Only this call, as `Publisher.Publish` or `Firestore.Commit`; every one when absent. */
  readonly rpc?: string;
  /** Only where the resource name (topic, subscription, database, queue) contains this text. */
  readonly resource?: string;
  /** From 0 to 1; 1 when absent. */
  readonly probability?: number;
  /** How often the rule fires before it is used up; without end when absent. */
  readonly times?: number;
  /** For `reorder`, `delay` and `slow-call`, which need it. */
  readonly delayMs?: number;
};

export type FaultPlan = { readonly seed: number; readonly rules: readonly FaultRule[] };
export type FaultSite = { readonly rpc?: string; readonly resource: string };
/** A fault that happens now. */
export type Fault = { readonly kind: FaultKind; readonly delayMs: number };

export type Faults = {
  readonly seed: number;
  /** The first rule of that kind which fits the site and whose die falls; its use is counted. */
  roll(kind: FaultKind, site: FaultSite): Fault | undefined;
  /** Adds a rule in front of the others; returns its removal. */
  add(rule: FaultRule): () => void;
  /** Replaces every rule; the counts stay. */
  replace(rules: readonly FaultRule[]): void;
  /** The rules and counts of the beginning: what follows meets the same faults as the first time. */
  reset(): void;
  /** How often each kind has fired so far. */
  counts(): Record<FaultKind, number>;
};

const callKinds: readonly FaultKind[] = ['fail-before', 'answer-lost', 'slow-call', 'close-stream', 'abort-transaction'];
const delayKinds: readonly FaultKind[] = ['reorder', 'delay', 'slow-call'];
const ruleFields = ['kind', 'rpc', 'resource', 'probability', 'times', 'delayMs'];

/**
 * Checks what came from a file or over HTTP as well as what the compiler saw.
 *
 * @throws Error for a rule that names something unknown or would do nothing, with its place in the plan
 */
export function checkRules(given: unknown): readonly FaultRule[] {
  if (!Array.isArray(given)) throw new Error('the fault rules are no array');
  for (const [index, rule] of given.entries()) {
    const wrong = mistakeIn(rule);
    if (wrong) throw new Error(`fault rule ${index + 1}: ${wrong}`);
  }
  return given;
}

function mistakeIn(rule: unknown): string | undefined {
  if (typeof rule !== 'object' || rule === null) return 'it is no object';
  const { kind, rpc, resource, probability, times, delayMs } = rule as Record<string, unknown>;
  if (typeof kind !== 'string' || !Object.hasOwn(faultKinds, kind))
    return `unknown kind ${JSON.stringify(kind)}; known are ${Object.keys(faultKinds).join(', ')}`;
  const unknown = Object.keys(rule).find((field) => !ruleFields.includes(field));
  if (unknown !== undefined) return `unknown field "${unknown}"; known are ${ruleFields.join(', ')}`;
  if (rpc !== undefined && !(typeof rpc === 'string' && /^(Publisher|Subscriber|Firestore|CloudTasks)\.\w+$/.test(rpc)))
    return `rpc is ${JSON.stringify(rpc)}; it must be of the form Publisher.Publish`;
  if (rpc !== undefined && !callKinds.includes(kind as FaultKind)) return `"${kind}" happens to messages, not to calls; leave rpc out`;
  if (resource !== undefined && typeof resource !== 'string') return 'resource must be a text';
  if (probability !== undefined && !(typeof probability === 'number' && probability >= 0 && probability <= 1))
    return `probability is ${JSON.stringify(probability)}; it must lie from 0 to 1`;
  if (times !== undefined && !(Number.isSafeInteger(times) && Number(times) > 0))
    return `times is ${JSON.stringify(times)}; it must be a whole number above 0`;
  const delays = delayKinds.includes(kind as FaultKind);
  if (delays && !(typeof delayMs === 'number' && delayMs > 0)) return `"${kind}" needs delayMs above 0`;
  return !delays && delayMs !== undefined ? `"${kind}" knows no delayMs` : undefined;
}

type Armed = { readonly rule: FaultRule; readonly id: number; left: number; readonly rolls: Map<string, number> };

export function createFaults(plan: FaultPlan = { seed: 1, rules: [] }): Faults {
  let ids = 0;
  let rules: Armed[] = [];
  let counts = none();
  const armed = (rule: FaultRule): Armed => ({ rule, id: ids++, left: rule.times ?? Number.POSITIVE_INFINITY, rolls: new Map() });
  const replace = (next: readonly FaultRule[]) => {
    const checked = checkRules(next);
    ids = 0;
    rules = checked.map(armed);
  };
  /**
   * Each rule has dice of its own at each place: what happens elsewhere, and in which order, does not change how they fall. So the
   * same seed gives the same faults although calls race.
   */
  const dieOf = ({ id, rolls }: Armed, kind: FaultKind, { rpc = '', resource }: FaultSite) => {
    const place = `${kind} ${rpc} ${resource}`;
    const roll = (rolls.get(place) ?? 0) + 1;
    rolls.set(place, roll);
    return seededRandom(hashOf(`${plan.seed} ${id} ${place} ${roll}`));
  };
  replace(plan.rules);
  return {
    seed: plan.seed,
    roll(kind, site) {
      for (const entry of rules) {
        const { rule } = entry;
        if (rule.kind !== kind || entry.left <= 0) continue;
        if (rule.rpc !== undefined && rule.rpc !== site.rpc) continue;
        if (rule.resource !== undefined && !site.resource.includes(rule.resource)) continue;
        const random = dieOf(entry, kind, site);
        if (random() >= (rule.probability ?? 1)) continue;
        entry.left -= 1;
        counts[kind] += 1;
        const delayMs = rule.delayMs ?? 0;
        return { kind, delayMs: kind === 'reorder' ? delayMs * (0.1 + 0.9 * random()) : delayMs };
      }
      return undefined;
    },
    add(rule) {
      checkRules([rule]);
      const entry = armed(rule);
      rules = [entry, ...rules];
      return () => {
        rules = rules.filter((other) => other !== entry);
      };
    },
    replace,
    reset() {
      replace(plan.rules);
      counts = none();
    },
    counts: () => ({ ...counts }),
  };
}

const none = () => Object.fromEntries(Object.keys(faultKinds).map((kind) => [kind, 0])) as Record<FaultKind, number>;

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
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
