export { system } from './adapters/system.ts';
export { type DedupRecord, decideClaim, decideRedrive } from './dedup/decide.ts';
export { createDedup, type DedupParts } from './dedup/dedup.ts';
export { createIdempotent, type Idempotent, type IdempotentParts } from './dedup/idempotent.ts';
export { createInbox, type InboxContext, type InboxParts, type InboxStore } from './dedup/inbox.ts';
export { dedupOptions, versionedOptions } from './dedup/options.ts';
export type { Evidence, FirstResult, Replay } from './dedup/outcomes.ts';
export type { ProcessedEvents } from './dedup/processed-events.ts';
export type { Reconcile } from './dedup/run.ts';
export { checkStore } from './dedup/store-check.ts';
export { checkSubscription, type SubscriptionFacts } from './dedup/subscription-check.ts';
export { type Apply, createVersioned, type Marked, type VersionedDocuments, type VersionedParts } from './dedup/versioned.ts';
export { createDelay, type DelayParts } from './delay/delay.ts';
export { dueOf, type When } from './delay/due.ts';
export type { Histogram } from './delay/lateness.ts';
export { createLateness, type Lateness, type LatenessParts } from './delay/lateness-counts.ts';
export type { DelayRecord } from './delay/ledger.ts';
export { delayOptions } from './delay/options.ts';
export { createRelease, type DispatchedTask, type ReleaseParts } from './delay/release.ts';
export type { Released } from './delay/release-record.ts';
export { createRepair, type Repaired, type RepairParts } from './delay/repair.ts';
export { createDelayStatus, type DelayStatus, type DelayStatusParts } from './delay/status.ts';
export type { DelayLedger, DelayState, LatenessHour, LatenessStore } from './delay/store.ts';
export { type ErrorCode, errorCodeOf, errorCodes, ToolkitError } from './errors.ts';
export {
  type CommandOutcome,
  createFifoCommands,
  type FifoCommandParts,
  type FifoCommands,
  type StreamStatus,
} from './fifo/commands.ts';
export type { Cursor } from './fifo/cursor.ts';
export { decideSequence } from './fifo/decide.ts';
export { createFifo, type FifoHandler, type FifoParts } from './fifo/fifo.ts';
export type { Gaps } from './fifo/gaps.ts';
export { createInboxFifo, type InboxFifoParts } from './fifo/inbox-fifo.ts';
export { fifoOptions } from './fifo/options.ts';
export type { Lane } from './fifo/perform.ts';
export type { FifoStore, Parked, Place } from './fifo/store.ts';
export type { Sweep } from './fifo/sweep.ts';
export type { CursorWrite, FifoTransactions, Step, Steps } from './fifo/transactions.ts';
export {
  attribute,
  dedupKeyOf,
  fingerprintOf,
  type KeyOf,
  type Message,
  type OutgoingMessage,
  type SequenceRef,
  sequenceRefOf,
} from './message.ts';
export { type MetricName, metrics } from './metrics.ts';
export type { Counter, Entry, RelayLease } from './outbox/decide.ts';
export type { OutboxDraft } from './outbox/drafts.ts';
export { outboxOptions } from './outbox/options.ts';
export { createOutbox, type Outbox, type OutboxParts, type Sent } from './outbox/outbox.ts';
export { createRelay, type RelayParts, type RelayPass } from './outbox/relay.ts';
export { type RunningRelay, startRelay } from './outbox/running-relay.ts';
export { createSequencer, type Sequenced, type SequencedDraft, type Sequencer, type SequencerParts } from './outbox/sequencer.ts';
export type { StreamStore } from './outbox/store.ts';
export type * from './ports.ts';
export { createPublisher, type Draft, stamped } from './publishing.ts';
export { deadLetterTopic, rejectedDeadLetters } from './transports/dead-letters.ts';
export { pullOptions } from './transports/pull-options.ts';
export { ack, deadLetter, nack, type Verdict } from './verdict.ts';
