import { type DedupRecord, decideRedrive, type Redrive } from '../../shared/dedup/decide.ts';
import { errorCodeOf, textOf } from '../../shared/errors.ts';
import { attribute, type OutgoingMessage } from '../../shared/message.ts';
import type { Publisher, RecordStore, System } from '../../shared/ports.ts';
import { settledGet, settledPut } from '../../shared/settled.ts';
import { type Case, caseOf } from './case.ts';
import type { Letter, LetterBox } from './letter-box.ts';

export type RedriveParts = {
  readonly letters: LetterBox;
  readonly store: RecordStore<DedupRecord>;
  readonly publisher: Publisher;
  readonly system: System;
  readonly as: Redrive;
  /** Instead of the topic that the message came from. */
  readonly topic?: string | undefined;
  /** Ids of letters, or of the messages that they were first; empty: all. */
  readonly messageIds: ReadonlySet<string>;
  /** Most letters that are decided. */
  readonly limit: number;
  readonly dryRun: boolean;
  /** Called with each letter that is looked at. */
  readonly tell: (found: Case, fate: string) => void;
};

export type Redriven = { readonly accepted: number; readonly kept: number; readonly left: number };

type Fate = { readonly kind: 'decided' } | { readonly kind: 'left'; readonly why: string };
type Judged = { readonly kind: 'run' | 'settled' } | Extract<Fate, { kind: 'left' }>;

const batchLetters = 50;
const storeTimeoutMs = 10_000;

/**
 * Decides dead letters about keys: record, then message, then ack. Ended anywhere and run again it does the same once: the record
 * knows what was decided, and a message that is published twice is a duplicate of itself.
 * @throws STORE_UNAVAILABLE, SERVICE_UNAVAILABLE, REFUSED; what was not decided is given back
 */
export async function redrive(parts: RedriveParts): Promise<Redriven> {
  const { letters, as, dryRun, tell, limit } = parts;
  const left = new Map<string, Letter>();
  const accepted = new Map<string, string>();
  let decided = 0;
  let looked = 0;
  try {
    for await (const letter of untilEmpty(letters, left)) {
      const found = isAsked(parts, letter) ? caseOf(letter) : undefined;
      if (!found) continue;
      const fate = await fateOf(parts, found, accepted);
      tell(found, told(fate, parts));
      if (fate.kind === 'decided' && !dryRun) {
        await letters.ack(letter);
        left.delete(letter.messageId);
        decided += 1;
      }
      looked += 1;
      if (looked === limit) break;
    }
  } finally {
    // What is not given back comes by itself when its time is over.
    await letters.release([...left.values()]).catch(() => {});
  }
  return { accepted: as === 'accept-new' ? decided : 0, kept: as === 'keep-old' ? decided : 0, left: left.size };
}

/** Each letter once, and all of them in `left` as they were pulled last. */
async function* untilEmpty(letters: LetterBox, left: Map<string, Letter>): AsyncGenerator<Letter> {
  const seen = new Set<string>();
  for (;;) {
    const pulled = await letters.pull(batchLetters);
    const fresh = pulled.filter(({ messageId }) => !seen.has(messageId));
    for (const letter of pulled) {
      // Acked, and come again: the ack was lost, and one more does no harm.
      if (seen.has(letter.messageId) && !left.has(letter.messageId)) await letters.ack(letter);
      else left.set(letter.messageId, letter);
      seen.add(letter.messageId);
    }
    if (fresh.length === 0) return;
    yield* fresh;
  }
}

const isAsked = ({ messageIds }: RedriveParts, { messageId, message }: Letter): boolean =>
  messageIds.size === 0 || messageIds.has(messageId) || messageIds.has(message.attributes[attribute.originId] ?? '');

function told(fate: Fate, { as, dryRun }: RedriveParts): string {
  if (fate.kind === 'left') return `left: ${fate.why}`;
  const word = as === 'accept-new' ? 'accepted' : 'kept';
  return dryRun ? `would be ${word}` : word;
}

/** @param accepted fingerprints of what was accepted before, by document id */
async function fateOf(parts: RedriveParts, found: Case, accepted: Map<string, string>): Promise<Fate> {
  const { as, dryRun, publisher } = parts;
  if (as === 'keep-old') {
    const judged = await judge(parts, found);
    return judged.kind === 'left' ? judged : { kind: 'decided' };
  }
  const before = accepted.get(found.documentId);
  // A record can replace one content by one other: the message that was accepted first would count as a copy of the old one.
  if (before !== undefined && before !== found.evidence.fingerprint)
    return { kind: 'left', why: 'another letter with this key was accepted just now' };
  const topic = await topicFor(parts, found);
  if (typeof topic !== 'string') return topic;
  const judged = await judge(parts, found);
  if (judged.kind === 'left') return judged;
  accepted.set(found.documentId, found.evidence.fingerprint);
  if (judged.kind === 'run' && !dryRun) await publisher.publish(topic, [revived(found.letter.message)]);
  return { kind: 'decided' };
}

async function topicFor({ letters, topic }: RedriveParts, { source }: Case): Promise<string | Extract<Fate, { kind: 'left' }>> {
  if (topic !== undefined) return topic;
  try {
    return await letters.topicOf(source);
  } catch (error) {
    return { kind: 'left', why: `its topic is not known, so name one with --topic: ${textOf(error)}` };
  }
}

/** Writes the operator's decision, unless the record shows it already. */
async function judge({ store, system, as, dryRun }: RedriveParts, { documentId, evidence: { fingerprint } }: Case): Promise<Judged> {
  const parts = { store, system, storeTimeoutMs };
  try {
    for (;;) {
      const current = await settledGet(parts, documentId);
      const decision = decideRedrive(current, { fingerprint, runId: system.randomId(), as });
      switch (decision.kind) {
        case 'publish':
          return { kind: 'run' };
        case 'settled':
          return decision;
        case 'busy':
          return { kind: 'left', why: `busy, a run holds the key for up to ${Math.ceil(decision.retryAfterMs / 1000)} s` };
        case 'unreadable':
          return { kind: 'left', why: `its record is of ${decision.found}` };
      }
      const judged: Judged = { kind: decision.runs ? 'run' : 'settled' };
      if (dryRun) return judged;
      const put = await settledPut(parts, documentId, decision.write, current?.version ?? 'absent', decision.write.ttlMs);
      if (put.kind === 'applied') return judged;
    }
  } catch (error) {
    if (errorCodeOf(error) !== 'RECORD_UNREADABLE') throw error;
    return { kind: 'left', why: textOf(error) };
  }
}

const deadMarks: readonly string[] = [attribute.deadReason, attribute.deadDetail, attribute.deadSource];

/** The message as it was before it died, with its key and origin. */
function revived(message: OutgoingMessage): OutgoingMessage {
  const attributes = Object.entries(message.attributes).filter(([name]) => !deadMarks.includes(name));
  return { ...message, attributes: Object.fromEntries(attributes) };
}
