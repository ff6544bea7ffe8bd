import grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { readProtos } from '../../src/emulator/grpc.ts';

/** A client that sends bytes as they are and hands out bytes: what is measured is the emulator, not an encoder. */
export type RawClient = {
  unary(method: string, request: Buffer): Promise<Buffer>;
  /** All answers of a call that streams them. */
  serverStream(method: string, request: Buffer): Promise<Buffer[]>;
  bidiStream(method: string): grpc.ClientDuplexStream<Buffer, Buffer>;
  close(): void;
};

const asIs = (bytes: Buffer) => bytes;

export function rawClient(address: string): RawClient {
  const client = new grpc.Client(address, grpc.credentials.createInsecure(), {
    'grpc.max_receive_message_length': -1,
    'grpc.use_local_subchannel_pool': 1,
  });
  const metadata = new grpc.Metadata();
  // Google's Firestore emulator lets the owner past its security rules.
  metadata.set('authorization', 'Bearer owner');
  return {
    unary: (method, request) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(method, asIs, asIs, request, metadata, (error, response) =>
          error ? reject(error) : resolve(response ?? Buffer.alloc(0)),
        );
      }),
    serverStream: (method, request) =>
      new Promise((resolve, reject) => {
        const answers: Buffer[] = [];
        client
          .makeServerStreamRequest(method, asIs, asIs, request, metadata)
          .on('data', (answer: Buffer) => answers.push(answer))
          .on('error', reject)
          .on('end', () => resolve(answers));
      }),
    bidiStream: (method) => client.makeBidiStreamRequest(method, asIs, asIs, metadata),
    close: () => client.close(),
  };
}

export type Encoder = (type: string, message: object) => Buffer;

/** Encodes requests before the clock runs. */
export function encoderOf(packageName: string, protosFile: string): Encoder {
  const protos = readProtos(packageName, protosFile);
  return (type, message) => {
    const found = protos.lookupType(type);
    return Buffer.from(found.encode(found.fromObject(message)).finish());
  };
}

/** The bytes of one field wherever it stands in a message. */
export function fieldBytes(message: Uint8Array, field: number): Uint8Array[] {
  const reader = protobuf.Reader.create(message);
  const found: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag >>> 3 === field && (tag & 7) === 2) found.push(reader.bytes());
    else reader.skipType(tag & 7);
  }
  return found;
}

/** A message of length-delimited fields alone; appended to another, protobuf merges them. */
export function encodedFields(field: number, values: readonly Uint8Array[]): Buffer {
  const writer = protobuf.Writer.create();
  for (const value of values) writer.uint32((field << 3) | 2).bytes(value);
  return Buffer.from(writer.finish());
}

/** The same request over and over, each with another number where the placeholder stands. */
export function numbered(template: Buffer, placeholder: string): () => Buffer {
  const at = template.indexOf(placeholder);
  let serial = 0;
  return () => {
    const request = Buffer.from(template);
    request.write(String(++serial).padStart(placeholder.length, '0'), at, 'latin1');
    return request;
  };
}
