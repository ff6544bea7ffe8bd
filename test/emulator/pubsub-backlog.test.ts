import { deserialize, serialize } from 'node:v8';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createFaults } from '../../src/emulator/faults.ts';
import type { Journal } from '../../src/emulator/journal.ts';
import { type Backlog, createBacklog } from '../../src/emulator/pubsub/backlog.ts';
import type { Consumer, Delivery } from '../../src/emulator/pubsub/delivery.ts';
import { timestampOf } from '../../src/emulator/pubsub/messages.ts';
import { normalized, type SubscriptionSettings } from '../../src/emulator/pubsub/settings.ts';
import { manualTime } from '../../src/emulator/time.ts';

type Mode = { readonly ordered: boolean; readonly exactlyOnce: boolean; readonly retains: boolean; readonly keyBatch: number };
type Step =
  | { readonly kind: 'publish'; readonly key: string }
  | { readonly kind: 'pull'; readonly most: number }
  | { readonly kind: 'ack' | 'nack' | 'extend'; readonly which: number }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'settings' | 'restart' | 'replay' };

const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('publish' as const), key: fc.constantFrom('', 'a', 'b') }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('pull' as const), most: fc.integer({ min: 1, max: 4 }) }) },
    { weight: 8, arbitrary: fc.record({ kind: fc.constantFrom('ack' as const, 'nack' as const, 'extend' as const), which: fc.nat(6) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(1_000, 10_000, 300_000) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('settings' as const, 'restart' as const, 'replay' as const) }) },
  ),
  { minLength: 30, maxLength: 100 },
);
const modes = fc.record({
  ordered: fc.boolean(),
  exactlyOnce: fc.boolean(),
  retains: fc.boolean(),
  keyBatch: fc.constantFrom(1, Number.POSITIVE_INFINITY),
});

/** Keeps what was noted as a disk would: no object is shared. */
function memoryJournal(): Journal {
  const kinds = new Map<string, Map<string, Buffer>>();
  const of = (kind: string) => kinds.get(kind) ?? kinds.set(kind, new Map()).get(kind) ?? new Map<string, Buffer>();
  return {
    *load<Value>(kind: string) {
      for (const key of [...of(kind).keys()].sort()) yield [key, deserialize(of(kind).get(key) ?? Buffer.of()) as Value] as const;
    },
    put: (kind, key, value) => void of(kind).set(key, serialize(value)),
    delete: (kind, key) => void of(kind).delete(key),
    saved: () => undefined,
    close: () => {},
  };
}

const settingsOf = ({ ordered, exactlyOnce, retains }: Mode): SubscriptionSettings =>
  normalized({
    name: 'projects/p/subscriptions/worker',
    topic: 'projects/p/topics/orders',
    pushConfig: null,
    ackDeadlineSeconds: 10,
    retainAckedMessages: retains,
    messageRetentionDuration: { seconds: '600', nanos: 0 },
    labels: {},
    enableMessageOrdering: ordered,
    expirationPolicy: null,
    filter: '',
    deadLetterPolicy: null,
    retryPolicy: null,
    detached: false,
    enableExactlyOnceDelivery: exactlyOnce,
    state: '',
  });

function world(mode: Mode) {
  const time = manualTime();
  const journal = memoryJournal();
  const faults = createFaults();
  const settings = settingsOf(mode);
  let [serial, ackIds] = [10_000_000_000, 0];
  const create = (): Backlog =>
    createBacklog({
      time,
      faults,
      journal,
      nextAckId: () => `1-${++ackIds}`,
      settings: () => settings,
      retentionMs: () => 600_000,
      forwardDead: () => false,
    });
  let backlog = create();
  const all: Delivery[] = [];
  /** Deliveries that no consumer heard the end of. */
  let out = 0;

  const pull = async (most: number): Promise<readonly Delivery[]> => {
    const taken: Delivery[] = [];
    const consumer: Consumer = {
      keyBatch: mode.keyBatch,
      room: () => ({ messages: most - taken.length, bytes: Number.POSITIVE_INFINITY, isIdle: taken.length === 0 }),
      leaseMs: () => 10_000,
      deliver(deliveries) {
        taken.push(...deliveries);
        out += deliveries.length;
      },
      settled() {
        out -= 1;
      },
    };
    const detach = backlog.attach(consumer);
    await Promise.resolve();
    detach();
    all.push(...taken);
    return taken;
  };
  const run = async (step: Step): Promise<void> => {
    if (step.kind === 'publish') {
      const message = { data: Buffer.of(1), attributes: {}, orderingKey: step.key, messageId: String(++serial) };
      backlog.add({ ...message, publishTime: timestampOf(time.nowMs()) });
    } else if (step.kind === 'pull') await pull(step.most);
    else if (step.kind === 'pass') await time.advance(step.ms);
    else if (step.kind === 'settings') backlog.follow();
    else if (step.kind === 'replay') backlog.seek(() => true, []);
    else if (step.kind === 'restart') {
      const before = backlog.messages();
      backlog.close();
      backlog = create();
      expect(backlog.messages().map(({ message }) => message)).toEqual(before.map(({ message }) => message));
    } else if ('which' in step) {
      const ackId = all.at(-1 - step.which)?.ackId ?? 'none';
      if (step.kind === 'ack') backlog.acknowledge(ackId);
      else backlog.modifyDeadline(ackId, step.kind === 'nack' ? 0 : 20_000);
    }
  };
  return { run, pull, backlog: () => backlog, out: () => out };
}

/** Of a key's messages without an ack, those that are out come before those that are not. */
function checkOrder(backlog: Backlog): void {
  const waiting = new Set<string>();
  for (const { message, lease } of backlog.messages()) {
    const { orderingKey } = message;
    if (orderingKey === '') continue;
    if (!lease) waiting.add(orderingKey);
    else expect(waiting, `${message.messageId} overtakes one of its key`).not.toContain(orderingKey);
  }
}

describe('Pub/Sub backlog', () => {
  test('whatever happens, it counts what it has, keeps the order of a key, and delivers every message until its ack', async () => {
    const property = fc.asyncProperty(modes, steps, async (mode, script) => {
      const { run, pull, backlog, out } = world(mode);
      for (const step of script) {
        await run(step);
        const messages = backlog().messages();
        expect([messages.length, messages.filter(({ lease }) => lease).length]).toEqual([backlog().size(), out()]);
        if (mode.ordered) checkOrder(backlog());
      }
      // What is out is given back; then all that is left comes, each message once, and that of a key in order.
      for (const { lease } of backlog().messages()) if (lease) backlog().modifyDeadline(lease.ackId, 0);
      const left = backlog()
        .messages()
        .map(({ message }) => message.messageId);
      const came: string[] = [];
      for (let received = await pull(3); received.length > 0; received = await pull(3)) {
        for (const { ackId, message } of received) {
          came.push(message.messageId);
          expect(backlog().acknowledge(ackId)).toBe(true);
        }
      }
      expect([...came].sort()).toEqual(left);
      expect(backlog().size()).toBe(0);
    });
    await fc.assert(property, { numRuns: 250, seed: 62 });
  });

  test('under exactly-once delivery no message comes again after an ack that counted, unless it is sought', async () => {
    const property = fc.asyncProperty(modes, steps, async (mode, script) => {
      const { run, pull, backlog } = world({ ...mode, exactlyOnce: true });
      const done = new Set<string>();
      for (const step of script) {
        if (step.kind === 'replay' || step.kind === 'restart') continue;
        if (step.kind !== 'pull') {
          await run(step);
          continue;
        }
        for (const [index, { ackId, message }] of (await pull(step.most)).entries()) {
          expect(done).not.toContain(message.messageId);
          if (index % 2 === 0 && backlog().acknowledge(ackId)) done.add(message.messageId);
        }
      }
    });
    await fc.assert(property, { numRuns: 200, seed: 50 });
  });
});
