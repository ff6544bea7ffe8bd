import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import type { Faults } from './faults.ts';

export const { status } = grpc;

/** An answer other than OK. Anything else that a handler throws is a defect of the emulator and answers INTERNAL. */
export class RpcError extends Error {
  readonly code: grpc.status;
  readonly metadata: grpc.Metadata | undefined;
  constructor(code: grpc.status, message: string, metadata?: grpc.Metadata) {
    super(message);
    this.code = code;
    this.metadata = metadata;
  }
}

export const invalidArgument = (message: string) => new RpcError(status.INVALID_ARGUMENT, message);
export const notFound = (message: string) => new RpcError(status.NOT_FOUND, message);
export const alreadyExists = (message: string) => new RpcError(status.ALREADY_EXISTS, message);
export const failedPrecondition = (message: string) => new RpcError(status.FAILED_PRECONDITION, message);
export const aborted = (message: string) => new RpcError(status.ABORTED, message);
export const unimplemented = (what: string) => new RpcError(status.UNIMPLEMENTED, `the embedded emulator does not support ${what}`);

export type UnaryHandler<Request, Response> = (
  request: Request,
  call: grpc.ServerUnaryCall<Request, Response>,
) => Response | Promise<Response>;
export type StreamHandler<Call> = (call: Call) => void;

/** Where a fault may hit: the name of the resource that a request is about. */
function resourceOf(request: unknown): string {
  const named = request as Record<string, unknown>;
  for (const field of ['topic', 'subscription', 'snapshot', 'database', 'parent', 'name']) {
    const value = named[field];
    if (typeof value === 'string' && value !== '') return value;
  }
  return '';
}

/** One unary method on the wire: faults before and after, and every error as a gRPC status. */
export function unary<Request, Response>(
  rpc: string,
  faults: Faults,
  handle: UnaryHandler<Request, Response>,
): grpc.handleUnaryCall<Request, Response> {
  return (call, answer) => {
    const site = { rpc, resource: resourceOf(call.request) };
    const respond = async (): Promise<Response> => {
      if (faults.roll('fail-before', site)) throw new RpcError(status.UNAVAILABLE, `fault: ${rpc} was not applied`);
      const response = await handle(call.request, call);
      if (faults.roll('answer-lost', site)) throw new RpcError(status.UNAVAILABLE, `fault: the answer of ${rpc} was lost`);
      return response;
    };
    respond().then(
      (response) => answer(null, response),
      (error: unknown) => answer(wireError(rpc, error)),
    );
  };
}

/** What goes on the wire for whatever a handler threw. */
export function wireError(rpc: string, error: unknown): Partial<grpc.StatusObject> {
  if (error instanceof RpcError) return { code: error.code, details: error.message, ...(error.metadata && { metadata: error.metadata }) };
  console.error(`emulator defect in ${rpc}:`, error);
  return { code: status.INTERNAL, details: `emulator defect in ${rpc}: ${error instanceof Error ? error.message : String(error)}` };
}

/** Registers a service; a method of the proto without a handler answers UNIMPLEMENTED and names itself. */
export function addService(server: grpc.Server, definition: grpc.ServiceDefinition, handlers: Record<string, unknown>): void {
  const implementation: Record<string, unknown> = {};
  for (const [name, method] of Object.entries(definition)) {
    const rpc = method.path.slice(method.path.lastIndexOf('.') + 1).replace('/', '.');
    const missing = unimplemented(rpc);
    implementation[name] =
      handlers[name] ??
      (method.responseStream
        ? (call: grpc.ServerWritableStream<unknown, unknown>) => call.emit('error', wireError(rpc, missing))
        : (_call: unknown, answer: grpc.sendUnaryData<unknown>) => answer(wireError(rpc, missing)));
  }
  server.addService(definition, implementation as grpc.UntypedServiceImplementation);
}

export type Protos = protobuf.Root;

/** The protos that a Google package ships: `readProtos('@google-cloud/pubsub', 'protos.json')`. */
export function readProtos(packageName: string, file: string): Protos {
  const require = createRequire(import.meta.url);
  let folder = dirname(require.resolve(packageName));
  while (!existsSync(join(folder, 'build', 'protos', file))) {
    if (folder === dirname(folder)) throw new Error(`${packageName} holds no build/protos/${file}`);
    folder = dirname(folder);
  }
  return protobuf.Root.fromJSON(JSON.parse(readFileSync(join(folder, 'build', 'protos', file), 'utf8')));
}

/** int64 as text, enums by name, every field present, and beside a oneof the name of the field that is set. */
const plain = { longs: String, enums: String, defaults: true, oneofs: true } as const;

/** The service of the protos as grpc-js takes it; a loader that also makes descriptors for reflection takes twice as long. */
export function serviceOf(protos: Protos, name: string): grpc.ServiceDefinition {
  const service = protos.lookupService(name);
  return Object.fromEntries(
    service.methodsArray.map((method) => {
      method.resolve();
      const { resolvedRequestType: request, resolvedResponseType: response } = method;
      if (!request || !response) throw new Error(`the protos do not know the types of ${name}.${method.name}`);
      const definition: grpc.MethodDefinition<object, object> = {
        path: `/${name}/${method.name}`,
        requestStream: method.requestStream === true,
        responseStream: method.responseStream === true,
        ...codecOf('request', request),
        ...codecOf('response', response),
      } as grpc.MethodDefinition<object, object>;
      return [method.name, definition];
    }),
  );
}

const codecOf = (side: 'request' | 'response', type: protobuf.Type) => ({
  [`${side}Serialize`]: (message: object) => Buffer.from(type.encode(type.fromObject(message)).finish()),
  [`${side}Deserialize`]: (bytes: Buffer) => type.toObject(type.decode(bytes), plain),
});

/** Large enough for a 10 MB request and its frame; grpc-js refuses above 4 MiB by itself, and clients retry that for minutes. */
const receiveLimitBytes = 32 * 1024 * 1024;

export type ListeningServer = { readonly address: string; readonly server: grpc.Server; close(): Promise<void> };

/** Binds to loopback; port 0 takes any free one. */
export async function listen(register: (server: grpc.Server) => void, port: number): Promise<ListeningServer> {
  const server = new grpc.Server({ 'grpc.max_receive_message_length': receiveLimitBytes, 'grpc.max_send_message_length': -1 });
  register(server);
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createInsecure(), (error, boundPort) =>
      error ? reject(error) : resolve(boundPort),
    );
  });
  return {
    address: `127.0.0.1:${bound}`,
    server,
    close: async () => server.forceShutdown(),
  };
}
