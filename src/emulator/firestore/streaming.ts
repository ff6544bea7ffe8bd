import grpc, { type ServerWritableStream } from '@grpc/grpc-js';
import { afterCall, beforeCall, type CallParts, RpcError, status, wireError } from '../grpc.ts';

/** One method that answers a request with several messages, all of them of one instant. */
export function streaming<Request extends { readonly database?: string; readonly parent?: string }>(
  rpc: string,
  parts: CallParts,
  handle: (request: Request) => readonly unknown[],
): (call: ServerWritableStream<Request, unknown>) => void {
  return (call) => {
    const respond = async () => {
      // Where headers came, the Node client passes an error on; else it tries again twice, 7 s in all, whatever the code.
      call.sendMetadata(new grpc.Metadata());
      const site = { rpc, resource: call.request.database || call.request.parent || '' };
      const before = beforeCall(site, parts);
      if (before !== undefined) await before;
      const answers = handle(call.request);
      const after = afterCall(site, parts);
      if (after !== undefined) await after;
      for (const answer of answers) {
        if (parts.faults.roll('close-stream', site)) throw new RpcError(status.UNAVAILABLE, `fault: ${rpc} was closed`);
        call.write(answer);
      }
      call.end();
    };
    respond().catch((error: unknown) => call.emit('error', wireError(rpc, error)));
  };
}
