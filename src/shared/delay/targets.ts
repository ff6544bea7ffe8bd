import { malformed } from '../errors.ts';
import { attribute, type Message } from '../message.ts';

export type Targets = {
  /** Where messages go once they are due, short or full. */
  readonly finalTopic: string;
  /** Other topics that a message may name as its target. */
  readonly targets?: readonly string[];
};

/**
 * The topic that a message goes to: the one that it names, if that is allowed, or the final one.
 * @throws MALFORMED_MESSAGE naming what is allowed
 */
export function targetOf({ attributes }: Pick<Message, 'attributes'>, { finalTopic, targets = [] }: Targets): string {
  const named = attributes[attribute.target];
  if (named === undefined) return finalTopic;
  const allowed = [finalTopic, ...targets].find((topic) => topic === named || shortName(topic) === named);
  if (allowed === undefined)
    throw malformed(
      `${attribute.target} is ${JSON.stringify(named.slice(0, 100))}; it must be one of ${[finalTopic, ...targets].join(', ')}`,
    );
  return allowed;
}

const shortName = (topic: string): string => topic.slice(topic.lastIndexOf('/') + 1);

/** @param subscription full name, whose project a short topic is in */
export const fullTopic = (topic: string, subscription: string): string =>
  topic.startsWith('projects/') ? topic : `${/^projects\/[^/]+/.exec(subscription)?.[0] ?? 'projects/'}/topics/${topic}`;

/** More passes through delay functions, without a due time, are a circle of topics. */
export const mostPasses = 16;

/**
 * How often a message passed a delay function without being delayed, this time included; `undefined` where it goes round in circles. The first
 * pass leaves no mark of its own: a message that has an origin has passed somewhere.
 * @throws MALFORMED_MESSAGE
 */
export function passOf({ attributes }: Pick<Message, 'attributes'>): number | undefined {
  const before = attributes[attribute.delayPasses] ?? (attributes[attribute.originId] === undefined ? '0' : '1');
  // A count below 0 would let a circle go on for as long.
  if (!/^\d{1,9}$/.test(before)) throw malformed(`${attribute.delayPasses} is no whole number from 0`);
  const passes = Number(before) + 1;
  return passes <= mostPasses ? passes : undefined;
}
