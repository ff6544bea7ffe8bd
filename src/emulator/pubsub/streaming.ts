import type { ServerDuplexStream } from '@grpc/grpc-js';
import { afterCall, beforeCall, type CallParts, invalidArgument, RpcError, status, wireError } from '../grpc.ts';
import type { Backlog } from './backlog.ts';
import type { Consumer } from './delivery.ts';
import { checkMade } from './serials.ts';
import type { Source } from './subscription.ts';

export type StreamingPullRequest = {
  readonly subscription: string;
  readonly ackIds: readonly string[];
  readonly modifyDeadlineSeconds: readonly number[];
  readonly modifyDeadlineAckIds: readonly string[];
  readonly streamAckDeadlineSeconds: number;
  readonly maxOutstandingMessages: string;
  readonly maxOutstandingBytes: string;
};

export type PullStream = ServerDuplexStream<StreamingPullRequest, object>;
export type StreamParts = CallParts & { readonly find: (subscription: string) => Source };

const rpc = 'Subscriber.StreamingPull';

/** One StreamingPull. It never ends with OK by itself: that would close the Node client's subscriber for good. */
export function openStream(call: PullStream, parts: StreamParts): void {
  let opened: OpenStream | undefined;
  let over = false;
  const close = () => {
    over = true;
    opened?.close();
  };
  const end = (error: unknown) => {
    if (over) return;
    close();
    call.emit('error', wireError(rpc, error));
  };
  const open = async (first: StreamingPullRequest) => {
    call.pause();
    await beforeCall({ rpc, resource: first.subscription }, parts);
    if (over) return;
    opened = createStream(call, first, { ...parts, source: parts.find(first.subscription), end });
    opened.start();
    call.resume();
  };
  call.on('data', (request: StreamingPullRequest) => {
    // What is still on its way when the stream ends must not open another, whose messages nobody would read.
    if (over) return;
    try {
      if (opened) opened.proceed(request);
      else open(request).catch(end);
    } catch (error) {
      end(error);
    }
  });
  call.on('end', () => {
    close();
    call.end();
  });
  call.on('cancelled', close);
  call.on('error', close);
}

type OpenStream = { start(): void; proceed(request: StreamingPullRequest): void; close(): void };
type OpenParts = CallParts & { readonly source: Source; readonly end: (error: unknown) => void };

function createStream(call: PullStream, first: StreamingPullRequest, parts: OpenParts): OpenStream {
  const { source, end, faults } = parts;
  const { backlog, calls, keyBatch, settings } = source;
  checkDeadline(first.streamAckDeadlineSeconds);
  const most = { messages: limit(first.maxOutstandingMessages), bytes: limit(first.maxOutstandingBytes) };
  let deadlineSeconds = first.streamAckDeadlineSeconds;
  let outstanding = { messages: 0, bytes: 0 };
  const site = { rpc, resource: first.subscription };
  let isOver = false;
  let detach = () => {};

  const answer = (more: object) => {
    if (isOver) return;
    if (faults.roll('close-stream', site)) return end(new RpcError(status.UNAVAILABLE, 'fault: the stream ends'));
    const { enableExactlyOnceDelivery, enableMessageOrdering } = settings();
    const subscriptionProperties = { exactlyOnceDeliveryEnabled: enableExactlyOnceDelivery, messageOrderingEnabled: enableMessageOrdering };
    call.write({ subscriptionProperties, ...more });
  };
  const apply = (request: StreamingPullRequest) => {
    if (!settings().enableExactlyOnceDelivery) {
      checkMade('ack_ids', request.ackIds);
      checkMade('modify_deadline_ack_ids', request.modifyDeadlineAckIds);
    }
    const confirmations = applyAcks(backlog, request);
    if (confirmations.length === 0 || !settings().enableExactlyOnceDelivery) return;
    const confirm = async () => {
      await afterCall(site, parts);
      for (const confirmation of confirmations) answer(confirmation);
    };
    confirm().catch(end);
  };
  const openCall = { kind: 'stream', end } as const;
  const consumer: Consumer = {
    keyBatch,
    room: () => ({
      messages: most.messages - outstanding.messages,
      bytes: most.bytes - outstanding.bytes,
      isIdle: outstanding.messages === 0,
    }),
    leaseMs: () => (deadlineSeconds || settings().ackDeadlineSeconds) * 1_000,
    deliver(deliveries) {
      const bytes = deliveries.reduce((sum, delivery) => sum + delivery.bytes, 0);
      outstanding = { messages: outstanding.messages + deliveries.length, bytes: outstanding.bytes + bytes };
      answer({ receivedMessages: deliveries });
    },
    settled: (bytes) => {
      outstanding = { messages: outstanding.messages - 1, bytes: outstanding.bytes - bytes };
    },
  };
  return {
    start() {
      answer({});
      apply(first);
      if (isOver) return;
      detach = backlog.attach(consumer);
      calls.add(openCall);
    },
    proceed(request) {
      checkLater(request);
      if (request.streamAckDeadlineSeconds !== 0) deadlineSeconds = request.streamAckDeadlineSeconds;
      apply(request);
    },
    close() {
      isOver = true;
      detach();
      calls.delete(openCall);
      // It was in use until now.
      source.touch();
    },
  };
}

/** A later request; all zero is a keep-alive, and zero means "not set" in each field. */
function checkLater(request: StreamingPullRequest): void {
  if (request.subscription !== '') throw invalidArgument(`subscription "${request.subscription}" is set again on an open stream`);
  if (Number(request.maxOutstandingMessages) !== 0 || Number(request.maxOutstandingBytes) !== 0) {
    throw invalidArgument(
      `max_outstanding_messages is ${request.maxOutstandingMessages} and max_outstanding_bytes ${request.maxOutstandingBytes}; the first request fixes them`,
    );
  }
  checkDeadline(request.streamAckDeadlineSeconds);
}

/** What a stream of exactly-once delivery says to acks and to deadlines: which ids counted. */
function applyAcks(backlog: Backlog, { ackIds, modifyDeadlineAckIds, modifyDeadlineSeconds }: StreamingPullRequest): object[] {
  if (modifyDeadlineAckIds.length !== modifyDeadlineSeconds.length)
    throw invalidArgument(
      `modify_deadline_ack_ids has ${modifyDeadlineAckIds.length} items and modify_deadline_seconds ${modifyDeadlineSeconds.length}; they must match`,
    );
  const deadlinesMs = modifyDeadlineSeconds.map((seconds) => checkedSeconds('modify_deadline_seconds', seconds) * 1_000);
  const confirmed = (ids: readonly string[], apply: (ackId: string, index: number) => boolean) => {
    const counted = new Set(ids.filter(apply));
    return { ackIds: [...counted], invalidAckIds: ids.filter((ackId) => !counted.has(ackId)) };
  };
  const acknowledgeConfirmation = confirmed(ackIds, (ackId) => backlog.acknowledge(ackId));
  const modifyAckDeadlineConfirmation = confirmed(modifyDeadlineAckIds, (ackId, index) =>
    backlog.modifyDeadline(ackId, deadlinesMs[index] ?? 0),
  );
  return [
    ...(ackIds.length > 0 ? [{ acknowledgeConfirmation }] : []),
    ...(modifyDeadlineAckIds.length > 0 ? [{ modifyAckDeadlineConfirmation }] : []),
  ];
}

export function checkedSeconds(field: string, seconds: number): number {
  if (!(seconds >= 0 && seconds <= 600)) throw invalidArgument(`${field} is ${seconds}; it must lie from 0 to 600`);
  return seconds;
}

function checkDeadline(seconds: number): void {
  if (seconds !== 0 && !(seconds >= 10 && seconds <= 600))
    throw invalidArgument(`stream_ack_deadline_seconds is ${seconds}; it must lie from 10 to 600`);
}

/** Zero and less mean no limit. */
const limit = (text: string): number => (Number(text) > 0 ? Number(text) : Number.POSITIVE_INFINITY);

/** What the service says when it moves a stream, as it does now and then. */
export const streamsEnded = new RpcError(status.UNAVAILABLE, 'the server closes; open the stream again');
