import grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { RpcError, status } from '../grpc.ts';

/** The error model that Google's clients read from a trailer (`docs/facts.md` 0.5). */
const errorModel = `syntax = "proto3";
message Any { string type_url = 1; bytes value = 2; }
message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }`;

/** Says which ack ids are stale, under exactly-once delivery; the other ids of the request are applied by then. */
export function staleAckIds(ackIds: readonly string[]): RpcError {
  const { root } = protobuf.parse(errorModel);
  const encoded = (type: string, value: object) => {
    const message = root.lookupType(type);
    return message.encode(message.fromObject(value)).finish();
  };
  const message = 'Some acknowledgement ids in the request were invalid; the ErrorInfo names them.';
  const errorInfo = encoded('ErrorInfo', {
    reason: 'EXACTLY_ONCE_ACKID_FAILURE',
    domain: 'pubsub.googleapis.com',
    metadata: Object.fromEntries(ackIds.map((ackId) => [ackId, 'PERMANENT_FAILURE_INVALID_ACK_ID'])),
  });
  const details = [{ typeUrl: 'type.googleapis.com/google.rpc.ErrorInfo', value: errorInfo }];
  const metadata = new grpc.Metadata();
  metadata.set('grpc-status-details-bin', Buffer.from(encoded('Status', { code: status.INVALID_ARGUMENT, message, details })));
  return new RpcError(status.INVALID_ARGUMENT, message, metadata);
}

const remembered = 100_000;

/** The last ack ids that counted. */
export function recentAckIds(): { add(ackId: string): void; has(ackId: string): boolean } {
  const ackIds = new Set<string>();
  return {
    add(ackId) {
      ackIds.add(ackId);
      const [oldest] = ackIds;
      if (ackIds.size > remembered && oldest !== undefined) ackIds.delete(oldest);
    },
    has: (ackId) => ackIds.has(ackId),
  };
}
