import type { ServerDuplexStream } from '@grpc/grpc-js';
import { invalidArgument, RpcError, status, wireError } from '../grpc.ts';
import type { Backlog, Consumer } from './backlog.ts';
import type { SubscriptionSettings } from './settings.ts';

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
export type StreamSubscription = {
  readonly backlog: Backlog;
  readonly settings: () => SubscriptionSettings;
  readonly keyBatch: number;
  /** Open streams, so that the subscription's deletion ends them. */
  readonly streams: Set<(error: RpcError) => void>;
};

/** One StreamingPull. It never ends with OK by itself: that would close the Node client's subscriber for good. */
export function openStream(call: PullStream, find: (subscription: string) => StreamSubscription): void {
  let opened: { subscription: StreamSubscription; setDeadline(seconds: number): void; close(): void } | undefined;
  const end = (error: unknown) => {
    opened?.close();
    opened = undefined;
    call.emit('error', wireError('Subscriber.StreamingPull', error));
  };
  call.on('data', (request: StreamingPullRequest) => {
    try {
      if (opened) proceed(opened.subscription, request, opened.setDeadline);
      else opened = open(call, request, find(request.subscription), end);
    } catch (error) {
      end(error);
    }
  });
  call.on('end', () => {
    opened?.close();
    call.end();
  });
  call.on('cancelled', () => opened?.close());
  call.on('error', () => opened?.close());
}

function open(call: PullStream, first: StreamingPullRequest, subscription: StreamSubscription, end: (error: RpcError) => void) {
  const { backlog, keyBatch, settings, streams } = subscription;
  checkDeadline(first.streamAckDeadlineSeconds);
  const most = { messages: limit(first.maxOutstandingMessages), bytes: limit(first.maxOutstandingBytes) };
  let leaseMs = (first.streamAckDeadlineSeconds || settings().ackDeadlineSeconds) * 1_000;
  let outstanding = { messages: 0, bytes: 0 };
  const { enableExactlyOnceDelivery, enableMessageOrdering } = settings();
  const subscriptionProperties = { exactlyOnceDeliveryEnabled: enableExactlyOnceDelivery, messageOrderingEnabled: enableMessageOrdering };
  const consumer: Consumer = {
    keyBatch,
    room: () => ({
      messages: most.messages - outstanding.messages,
      bytes: most.bytes - outstanding.bytes,
      isIdle: outstanding.messages === 0,
    }),
    leaseMs: () => leaseMs,
    deliver(deliveries) {
      const bytes = deliveries.reduce((sum, delivery) => sum + delivery.bytes, 0);
      outstanding = { messages: outstanding.messages + deliveries.length, bytes: outstanding.bytes + bytes };
      call.write({ receivedMessages: deliveries, subscriptionProperties });
    },
    settled: (bytes) => {
      outstanding = { messages: outstanding.messages - 1, bytes: outstanding.bytes - bytes };
    },
  };
  call.write({ receivedMessages: [], subscriptionProperties });
  const detach = backlog.attach(consumer);
  streams.add(end);
  applyAcks(backlog, first);
  return {
    subscription,
    setDeadline: (seconds: number) => {
      leaseMs = seconds * 1_000;
    },
    close() {
      detach();
      streams.delete(end);
    },
  };
}

/** A later request; all zero is a keep-alive, and zero means "not set" in each field. */
function proceed({ backlog }: StreamSubscription, request: StreamingPullRequest, setDeadline: (seconds: number) => void): void {
  if (request.subscription !== '') throw invalidArgument('subscription is set again on an open stream');
  if (Number(request.maxOutstandingMessages) !== 0 || Number(request.maxOutstandingBytes) !== 0) {
    throw invalidArgument('max_outstanding_messages and max_outstanding_bytes are fixed by the first request');
  }
  checkDeadline(request.streamAckDeadlineSeconds);
  if (request.streamAckDeadlineSeconds !== 0) setDeadline(request.streamAckDeadlineSeconds);
  applyAcks(backlog, request);
}

function applyAcks(backlog: Backlog, { ackIds, modifyDeadlineAckIds, modifyDeadlineSeconds }: StreamingPullRequest): void {
  if (modifyDeadlineAckIds.length !== modifyDeadlineSeconds.length)
    throw invalidArgument('modify_deadline_ack_ids and modify_deadline_seconds differ in length');
  for (const ackId of ackIds) backlog.acknowledge(ackId);
  modifyDeadlineAckIds.forEach((ackId, index) => {
    backlog.modifyDeadline(ackId, checkedSeconds(modifyDeadlineSeconds[index] ?? 0) * 1_000);
  });
}

export function checkedSeconds(seconds: number): number {
  if (!(seconds >= 0 && seconds <= 600)) throw invalidArgument(`the ack deadline is ${seconds} s; it must lie from 0 to 600`);
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
