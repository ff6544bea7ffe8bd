import grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { RpcError, status } from '../grpc.ts';

/** The error model that Google's clients read from a trailer (`docs/facts.md` 0.5). */
const errorModel = `syntax = "proto3";
message Any { string type_url = 1; bytes value = 2; }
message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }`;

/**
 * How a request with stale ack ids is answered, whose other ids are applied. `faithful`: with INVALID_ARGUMENT, as by the service;
 * Google's clients take that for a failure of the others too. `clean`: with UNAVAILABLE, upon which they send the others again.
 */
export type StaleAnswer = 'faithful' | 'clean';

/** Says which ack ids are stale, under exactly-once delivery; the other ids of the request are applied by then. */
export function staleAckIds(ackIds: readonly string[], answer: StaleAnswer): RpcError {
  const code = answer === 'clean' ? status.UNAVAILABLE : status.INVALID_ARGUMENT;
  const { root } = protobuf.parse(errorModel);
  const encoded = (type: string, value: object) => {
    const message = root.lookupType(type);
    return message.encode(message.fromObject(value)).finish();
  };
  const message = 'Some acknowledgement ids in the request were invalid; the ErrorInfo names them.';
  const errorInfo = encoded('ErrorInfo', {
    reason: 'EXACTLY_ONCE_ACKID_FAILURE',
    domain: 'pubsub.googleapis.com',
    metadata: Object.fromEntries(fitting(ackIds).map((ackId) => [ackId, 'PERMANENT_FAILURE_INVALID_ACK_ID'])),
  });
  const details = [{ typeUrl: 'type.googleapis.com/google.rpc.ErrorInfo', value: errorInfo }];
  const metadata = new grpc.Metadata();
  metadata.set('grpc-status-details-bin', Buffer.from(encoded('Status', { code, message, details })));
  return new RpcError(code, message, metadata);
}

/** Clients take trailers of 8 KiB, and one id has 40 bytes beside its own; nothing is said of what does not fit. */
function fitting(ackIds: readonly string[]): string[] {
  let leftBytes = 4_096;
  return ackIds.filter((ackId) => {
    leftBytes -= Buffer.byteLength(ackId) + 40;
    return leftBytes > 0;
  });
}

const leastRemembered = 50_000;

/** The last ack ids that counted, in two halves: the older one is forgotten as a whole. */
export function recentAckIds(): { add(ackId: string): void; has(ackId: string): boolean } {
  let [older, newer] = [new Set<string>(), new Set<string>()];
  return {
    add(ackId) {
      newer.add(ackId);
      if (newer.size >= leastRemembered) [older, newer] = [newer, new Set()];
    },
    has: (ackId) => newer.has(ackId) || older.has(ackId),
  };
}
