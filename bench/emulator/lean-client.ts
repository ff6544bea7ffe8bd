import { connect, type IncomingHttpHeaders } from 'node:http2';

/** Unary calls straight on HTTP/2: a gRPC client library would need more time for a call than the emulators do. */
export type LeanClient = {
  unary(method: string, request: Buffer): Promise<Buffer>;
  /** All answers of a call that streams them. */
  serverStream(method: string, request: Buffer): Promise<Buffer[]>;
  close(): void;
};

const prefixBytes = 5;

export function leanClient(address: string): LeanClient {
  const session = connect(`http://${address}`);
  // Google's Firestore emulator lets the owner past its security rules.
  const headers = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers', authorization: 'Bearer owner' };

  const serverStream = (method: string, request: Buffer): Promise<Buffer[]> =>
    new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      const check = ({ 'grpc-status': status, 'grpc-message': message }: IncomingHttpHeaders) => {
        if (status !== undefined && status !== '0') reject(new Error(`${method} answered ${status}: ${message}`));
      };
      session
        .request({ ...headers, ':path': method })
        .on('response', check)
        .on('trailers', check)
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .on('error', reject)
        .on('end', () => resolve(messagesIn(Buffer.concat(chunks))))
        .end(framed(request));
    });
  return {
    serverStream,
    async unary(method, request) {
      const [answer = Buffer.alloc(0)] = await serverStream(method, request);
      return answer;
    },
    close: () => session.close(),
  };
}

function framed(message: Buffer): Buffer {
  const frame = Buffer.alloc(prefixBytes + message.length);
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, prefixBytes);
  return frame;
}

function messagesIn(bytes: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let at = 0; at + prefixBytes <= bytes.length; ) {
    const end = at + prefixBytes + bytes.readUInt32BE(at + 1);
    messages.push(bytes.subarray(at + prefixBytes, end));
    at = end;
  }
  return messages;
}
