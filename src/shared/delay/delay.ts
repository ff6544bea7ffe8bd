import { malformed, ToolkitError } from '../errors.ts';
import { attribute, dedupKeyOf, forwarded, type Message, type OutgoingMessage } from '../message.ts';
import { type Options, readOptions } from '../options.ts';
import type { Log, PayloadStore, Publisher, Scheduler, System, VerdictHandler } from '../ports.ts';
import { ack, deadLetter, neverThrowing, type Verdict, verdictOfError } from '../verdict.ts';
import { pause } from '../waiting.ts';
import { arm, delayCountOf, released, tombstoneLeft, withoutInstructions } from './arming.ts';
import { type Asked, scheduleByMessage } from './by-message.ts';
import { carry, keepMsUntil } from './carrying.ts';
import { planDelay, queueOf, taskId } from './decide.ts';
import { delayOptions } from './options.ts';
import type { DelayLedger } from './store.ts';
import { fullTopic, mostPasses, passOf, type Targets, targetOf } from './targets.ts';

export type DelayParts = Targets & {
  readonly publisher: Publisher;
  readonly scheduler: Pick<Scheduler, 'schedule' | 'remove'>;
  /** Full names; a message's task goes to one of them, always the same. */
  readonly queues: readonly string[];
  /** Where messages with a `ptk-delay-id` are known by it; without a ledger such a message is a dead letter. */
  readonly ledger?: DelayLedger;
  /** Every delayed message gets an entry in the ledger, under its key where it has no id: then a lost task can be made again. */
  readonly ledgerAll?: boolean;
  /** For messages that a task cannot carry; without it they are dead letters. */
  readonly payloads?: PayloadStore;
  /** The task publishes by itself, and no release handler is asked: one hop, no ids, nothing larger than a task. */
  readonly handlerless?: boolean;
  /** The topic of a subscription, full name, where it can be found out: a message that is to go where it is stays there. */
  readonly topicOf?: (subscription: string) => Promise<string | undefined>;
  readonly system: System;
  readonly log: Log;
  readonly options?: Partial<Options<typeof delayOptions>>;
};

/** Furthest that one task may wait (`docs/facts.md` C.4). */
const furthestTaskMs = 720 * 3_600_000;

/** Turns a message with a due time into one task, however often it is delivered; one without goes on at once. */
export function createDelay(parts: DelayParts): VerdictHandler {
  const { publisher, scheduler, queues, ledger, payloads, system, log } = parts;
  const { defaultMs, holdMs, storeTimeoutMs } = readOptions(delayOptions, parts.options);
  const { clock } = system;
  const ledgerParts = parts.handlerless ? undefined : ledger && { ...parts, ledger, storeTimeoutMs };
  const ledgerAll = ledgerParts !== undefined && parts.ledgerAll === true;

  const isThere = async ({ subscription }: Message, target: string): Promise<boolean> =>
    (await parts.topicOf?.(subscription)) === fullTopic(target, subscription);

  /** What was released here, or goes round in circles, is not delayed by default once more. */
  const defaultFor = async (message: Message, target: string): Promise<number> => {
    if (defaultMs === 0) return 0;
    const count = Number(delayCountOf(message));
    return count === 0 || (count < mostPasses && !(await isThere(message, target))) ? defaultMs : 0;
  };

  /** A message that is already where it is to go has reached it, and one that comes round again and again goes no further. */
  const publishNow = async (message: Message, outgoing: OutgoingMessage, target: string): Promise<Verdict> => {
    if (await isThere(message, target)) return ack('processed');
    const pass = passOf(message);
    if (pass === undefined) return deadLetter('loop', `the message passed delay functions too often; it comes round from ${target}`);
    const attributes = { ...outgoing.attributes, ...(pass > 1 && { [attribute.delayPasses]: String(pass) }) };
    await publisher.publish(target, [{ ...outgoing, attributes }]);
    return ack('processed');
  };

  /** A task that publishes by itself: one hop. */
  const schedulePublish = async ({ message, outgoing, key, delayCount, target, plan }: AskedOnce): Promise<Verdict> => {
    const { dueAtMs, instruction } = plan;
    const waitMs = dueAtMs - (message.publishTimeMs ?? clock.nowMs());
    if (waitMs > furthestTaskMs)
      throw new ToolkitError(
        'REFUSED',
        `the message is due ${waitMs} ms after it was published; a task that publishes by itself may wait ${furthestTaskMs}`,
      );
    const source = message.subscription;
    const id = taskId({ source, key, instruction, delayCount, hop: 1 });
    const publishTo = fullTopic(target, source);
    await scheduler.schedule({ queue: queueOf(id, queues), id, scheduledForMs: dueAtMs, body: publishBody(released(outgoing)), publishTo });
    return ack('scheduled');
  };

  const scheduleRelease = async ({ message, outgoing, key, delayCount, target, plan }: AskedOnce): Promise<Verdict> => {
    const { dueAtMs, scheduledForMs, instruction } = plan;
    const source = message.subscription;
    // A publisher's copy has an origin of its own, and so is other bytes.
    const name = [source, message.messageId, key, instruction, delayCount];
    const carried = await carry(payloads, outgoing, name, keepMsUntil(dueAtMs, clock.nowMs()));
    const to = target === parts.finalTopic ? {} : { target };
    const count = 'payload' in carried ? { delayCount } : {};
    await arm(scheduler, queues, { v: 1, source, key, instruction, hop: 1, dueAtMs, scheduledForMs, ...to, ...carried, ...count });
    return ack('scheduled');
  };

  const deliver = async (message: Message): Promise<Verdict> => {
    const key = dedupKeyOf(message);
    const target = targetOf(message, parts);
    const delayId = message.attributes[attribute.delayId];
    if (delayId !== undefined && !ledgerParts) throw malformed(`${attribute.delayId} is set, and there is no ledger here`);
    const isLedgered = delayId !== undefined;
    const rules = { defaultMs: await defaultFor(message, target), holdMs: ledgerAll ? 0 : holdMs, isLedgered };
    const plan = planDelay(message, clock.nowMs(), rules);
    const outgoing = withoutInstructions(forwarded(message, key));
    if (plan.kind === 'now') return publishNow(message, outgoing, target);
    const delayCount = delayCountOf(message);
    if (plan.kind === 'hold') {
      await pause(clock, plan.forMs);
      await publisher.publish(target, [released(outgoing)]);
      return ack('processed');
    }
    const asked = { message, outgoing, key, delayCount, target, plan };
    const id = delayId ?? (ledgerAll ? key : undefined);
    if (ledgerParts && id !== undefined) return scheduleByMessage(ledgerParts, { ...asked, id });
    return parts.handlerless ? schedulePublish(asked) : scheduleRelease(asked);
  };

  /** A message that ends here leaves its number to its stream (protocol 0.12). */
  const withTombstone = async (message: Message, verdict: Verdict): Promise<Verdict> => {
    const tombstone = verdict.kind === 'deadLetter' && verdict.reason !== 'loop' && tombstoneLeft(message, verdict.reason);
    if (tombstone) await publisher.publish(parts.finalTopic, [tombstone]);
    return verdict;
  };

  const held = new Map<string, Promise<Verdict>>();
  /** Copies that come while a message is in hand get its verdict, and make no call. */
  const joined = (message: Message): Promise<Verdict> => {
    const same = `${message.subscription} ${message.messageId}`;
    const running =
      held.get(same) ??
      deliver(message)
        .catch((error: unknown) => {
          const verdict = verdictOfError(error);
          if (verdict.kind === 'deadLetter') return verdict;
          throw error;
        })
        .then((verdict) => withTombstone(message, verdict))
        .finally(() => held.delete(same));
    held.set(same, running);
    return running;
  };
  return neverThrowing(log, joined);
}

type AskedOnce = Omit<Asked, 'id'>;

/** As Pub/Sub's REST publish takes it. */
const publishBody = ({ data, attributes, orderingKey }: OutgoingMessage): Uint8Array =>
  Buffer.from(
    JSON.stringify({ messages: [{ data: Buffer.from(data).toString('base64'), attributes, ...(orderingKey && { orderingKey }) }] }),
  );
