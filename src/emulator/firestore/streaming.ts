import type { ServerWritableStream } from '@grpc/grpc-js';
import type { Faults } from '../faults.ts';
import { RpcError, status, wireError } from '../grpc.ts';

/** One method that answers a request with several messages, all of them of one instant. */
export function streaming<Request extends { readonly database?: string; readonly parent?: string }>(
  rpc: string,
  faults: Faults,
  handle: (request: Request) => readonly unknown[],
): (call: ServerWritableStream<Request, unknown>) => void {
  return (call) => {
    try {
      const resource = call.request.database || call.request.parent || '';
      if (faults.roll('fail-before', { rpc, resource })) throw new RpcError(status.UNAVAILABLE, `fault: ${rpc} was not applied`);
      for (const answer of handle(call.request)) call.write(answer);
      call.end();
    } catch (error) {
      call.emit('error', wireError(rpc, error));
    }
  };
}
