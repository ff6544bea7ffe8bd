import { attribute } from '../../../src/shared/message.ts';
import type { Finding } from '../book.ts';
import type { Cell } from './cells.ts';
import { dataOf, keyOf, topics } from './plan.ts';
import type { Situation } from './situations.ts';
import { digestOf, type Published } from './stage.ts';

/** Compares what was published of a cell with what must have been: each key whole, not before it was due, and as often as documented. */
export function judge({ cell, given, expected, topic, mayCopy }: Cell, published: readonly Published[]): Finding[] {
  const findings: Finding[] = [];
  const numberIn = (key: string) => (key.startsWith(`${cell}#`) ? key.slice(cell.length) : `${key}, another one's key,`);
  const lost = (text: string) => void findings.push({ kind: 'lost', text });
  const repeated = (text: string) => void findings.push({ kind: 'repeated', text });
  const letters = published.filter((each) => each.topic === topics.dead);
  const tombstones = published.filter((each) => each.topic !== topics.dead && each.attributes[attribute.tombstone] !== undefined);
  for (const { attributes } of letters) lost(`is a dead letter: ${attributes[attribute.deadReason]} ${attributes[attribute.deadDetail]}`);
  const counts = new Map<string, number>();
  for (const { key, atMs, sha256, attributes, ...each } of published) {
    if (each.topic === topics.dead || attributes[attribute.tombstone] !== undefined) continue;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    const dueAtMs = expected.get(key);
    if (dueAtMs === undefined) repeated(`${numberIn(key)} was published, and was not to be`);
    else if (atMs < dueAtMs) lost(`${numberIn(key)} was published ${dueAtMs - atMs} ms before it was due`);
    if (each.topic !== topic) lost(`${numberIn(key)} was published to ${each.topic}`);
    if (sha256 !== digestOf(dataSent(given, key))) lost(`${numberIn(key)} came with other bytes`);
  }
  for (const key of expected.keys()) if (!counts.has(key)) lost(`${numberIn(key)} was never published`);
  const [first] = expected.keys();
  for (const [key, count] of counts) {
    const most = mayCopy && key === first ? 2 : 1;
    // Where answers of publishes are lost, the client itself sends again.
    if (topic === topics.plain && count > most) repeated(`${numberIn(key)} was published ${count} times, expected ${most} at most`);
  }
  if (given.isNumbered)
    given.messages.forEach((_, index) => {
      const key = keyOf(cell, index + 1);
      const isLeft = tombstones.some(({ attributes }) => attributes[attribute.sequence] === String(index + 1));
      if (!expected.has(key) && !isLeft) lost(`number ${index + 1} of its stream was left out without a tombstone`);
      if (expected.has(key) && isLeft) lost(`number ${index + 1} of its stream became a tombstone, and was to be published`);
    });
  return findings;
}

function dataSent({ messages }: Situation, key: string): Buffer {
  // An occurrence adds its time to the key.
  const [sent = ''] = key.split('@');
  return dataOf(sent, messages[Number(sent.slice(sent.indexOf('#') + 1)) - 1]?.isLarge ?? false);
}

/** More messages than keys. */
export function repeatsIn(published: readonly Published[]): number {
  const messages = messagesIn(published);
  return messages.length - new Set(messages.map(({ key }) => key)).size;
}

/** Without tombstones and dead letters. */
export const messagesIn = (published: readonly Published[]): readonly Published[] =>
  published.filter(({ topic, attributes }) => topic !== topics.dead && attributes[attribute.tombstone] === undefined);
