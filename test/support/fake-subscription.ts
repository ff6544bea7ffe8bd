import { EventEmitter } from 'node:events';
import type { Message as PubsubMessage, Subscription } from '@google-cloud/pubsub';
import type { Clock } from '../../src/shared/ports.ts';
import { startPull } from '../../src/shared/transports/pull.ts';
import { keptDeadLetters, silentLog } from '../../src/testing/doubles.ts';
import { manualSystem } from './manual-system.ts';

type Parts = Parameters<typeof startPull>[0];

/** What `startPull` needs of a subscription, and what became of the deliveries it emits. */
class FakeSubscription extends EventEmitter {
  readonly name = 'projects/p/subscriptions/s';
  readonly done: string[] = [];
  readonly #nowMs: () => number;
  constructor(nowMs: () => number) {
    super();
    this.#nowMs = nowMs;
  }
  setOptions(options: object): void {
    this.done.push(Object.keys(options).join());
  }
  async close(): Promise<void> {
    this.done.push('closed');
  }
  deliver(id: string, change: object = {}): PubsubMessage {
    const settle = (how: string) => {
      this.done.push(`${how} ${id}`);
      this.emit(how, id);
    };
    const delivery = {
      id,
      data: Buffer.from('x'),
      attributes: { a: '1' },
      publishTime: new Date(1_767_225_600_500),
      received: this.#nowMs(),
      ackWithResponse: async () => {
        settle('ack');
        return 'SUCCESS';
      },
      nack: () => settle('nack'),
      modAckWithResponse: async () => 'SUCCESS',
      ...change,
    } as unknown as PubsubMessage;
    this.emit('message', delivery);
    return delivery;
  }
}

/** A pull of a fake subscription in manual time. */
export function fakePull(handle: Parts['handle'], { options, deadLetters = keptDeadLetters() }: Partial<Parts> = {}) {
  const manual = manualSystem();
  const timers = new Set<() => void>();
  const clock: Clock = {
    ...manual.clock,
    after(delayMs, run) {
      const cancel = manual.clock.after(delayMs, () => {
        timers.delete(stop);
        run();
      });
      const stop = () => {
        timers.delete(stop);
        cancel();
      };
      timers.add(stop);
      return stop;
    },
  };
  const system = { ...manual, clock };
  const fake = new FakeSubscription(system.clock.nowMs);
  const logged: string[] = [];
  const counted: string[] = [];
  const line = (level: string) => (fields: object, text: string) => void logged.push(`${level}: ${text} ${JSON.stringify(fields)}`);
  const log = { ...silentLog, warn: line('warn'), error: line('error') };
  const meter: Parts['meter'] = { record: (name, attributes) => void counted.push([name, ...Object.values(attributes)].join(' ')) };
  const subscription = fake as unknown as Subscription;
  const pull = startPull({ subscription, handle, deadLetters, system, log, meter, ...(options && { options }) });
  return { fake, system, pull, logged, counted, timers };
}
