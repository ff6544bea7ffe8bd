import type { Log, Meter, RecordStore, Revised, System } from './ports.ts';

/** Every number that the toolkit gives out; attributes hold names and reasons, never a key or a payload. */
export const metrics = {
  'ptk.dedup.handled': { kind: 'counter', about: 'runs that ended, by `outcome`: processed, failed' },
  'ptk.dedup.duplicates': {
    kind: 'counter',
    about: 'by `kind`: redelivery (the broker), publisher_retry, hop (delay, dead letter), zombie (a run that outlived its lease)',
  },
  'ptk.dedup.in_progress': { kind: 'counter', about: 'deliveries that met a run in progress' },
  'ptk.dedup.conflicts': { kind: 'counter', about: 'other content under a finished key' },
  'ptk.dedup.lease_lost': { kind: 'counter', about: 'runs whose key another run took' },
  'ptk.dedup.record_lost': { kind: 'counter', about: 'records that the store lost while their run went on' },
  'ptk.dedup.abandoned': { kind: 'counter', about: 'dead runs with effects outside, by `decision`: done, run_again, escalated' },
  'ptk.dedup.unguarded': { kind: 'counter', about: 'runs without dedup: the store was down (`open`), or the key was missing' },
  'ptk.dedup.shadowed': { kind: 'counter', about: 'what shadow mode would not have run, by `reason`' },
  'ptk.dedup.results_dropped': { kind: 'counter', about: 'results not kept, by `reason`: size, form' },
  'ptk.fifo.parked': { kind: 'counter', about: 'messages that were stored until their turn, by `reason`: early, busy, blocked, epoch' },
  'ptk.fifo.not_parked': { kind: 'counter', about: 'messages too large to be stored until their turn, which were given back' },
  'ptk.fifo.blocked': { kind: 'counter', about: 'streams that stopped, by `reason`: attempts (of a number), epoch (a newer one)' },
  'ptk.fifo.lease_lost': { kind: 'counter', about: 'numbers that were run, and whose stream another run had taken meanwhile' },
  'ptk.fifo.gaps': { kind: 'counter', about: 'looks of a sweep at a stream whose next number is missing' },
  'ptk.fifo.skipped': { kind: 'counter', about: 'gaps that a sweep passed over, since nobody had written their numbers down' },
  'ptk.delay.lateness': {
    kind: 'histogram',
    unit: 'ms',
    about: 'from the due time to when the message was published, by the clock of the release',
  },
  'ptk.delay.forged': { kind: 'counter', about: 'calls of the release that no queue of ours made, by `reason`: header, queue, token' },
  'ptk.pull.extension_ended': {
    kind: 'counter',
    about: 'deliveries that ran longer than Pub/Sub leaves them alone, by `why`: time, refused',
  },
  'ptk.pull.ack_failed': { kind: 'counter', about: 'acks that an exactly-once subscription refused' },
  'ptk.store.duration': { kind: 'histogram', unit: 'ms', about: 'calls of a record store, by `call` and `outcome`' },
} as const satisfies Readonly<Record<string, { kind: 'counter' | 'histogram'; unit?: string; about: string }>>;

export type MetricName = keyof typeof metrics;

/** A store whose calls are measured. */
export function meteredStore<R extends Revised>(
  store: RecordStore<R>,
  meter: Meter | undefined,
  { clock }: Pick<System, 'clock'>,
): RecordStore<R> {
  if (!meter) return store;
  const measured = async <T>(call: string, work: Promise<T>, outcomeOf: (result: T) => string): Promise<T> => {
    const startMs = clock.monotonicMs();
    let outcome = 'error';
    try {
      const result = await work;
      outcome = outcomeOf(result);
      return result;
    } finally {
      meter.record('ptk.store.duration', { call, outcome }, clock.monotonicMs() - startMs);
    }
  };
  return {
    get: (key) => measured('get', store.get(key), () => 'ok'),
    put: (key, record, expected, keepMs) =>
      measured('put', store.put(key, record, expected, keepMs), (result) => ('version' in result ? 'ok' : 'conflict')),
  };
}

/** What the layers of a consumer tell the world: a log, and numbers under the consumer's name. */
export type Telemetry = { readonly log: Log; count(name: MetricName, attributes?: Readonly<Record<string, string>>): void };

export const telemetry = (consumer: string, log: Log, meter: Meter | undefined): Telemetry => ({
  log,
  count: meter ? (name, attributes) => meter.record(name, { consumer, ...attributes }) : () => {},
});
