import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import type { Faults } from './faults.ts';
import type { Journal } from './journal.ts';
import type { Time } from './time.ts';

export const { status } = grpc;

/** An answer other than OK. Anything else that a handler throws is a defect of the emulator and answers INTERNAL. */
export class RpcError extends Error {
  readonly code: grpc.status;
  readonly metadata: grpc.Metadata | undefined;
  constructor(code: grpc.status, message: string, metadata?: grpc.Metadata) {
    // It is an answer: nobody reads where it was made, and under contention the stacks would cost more than the commits.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = stackTraceLimit;
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
  for (const field of ['topic', 'subscription', 'snapshot', 'queue', 'task', 'database', 'parent', 'name']) {
    const value = named[field];
    if (typeof value === 'string' && value !== '') return value;
    // A resource that is created or updated stands in the request itself.
    const name = typeof value === 'object' && value !== null ? (value as { readonly name?: unknown }).name : undefined;
    if (typeof name === 'string' && name !== '') return name;
  }
  return '';
}

/** What every call meets besides its handler. */
export type CallParts = { readonly faults: Faults; readonly time: Time; readonly journal: Journal };

/**
 * What a call of one answer does, however it came: faults before and after it, and what it changed on disk.
 *
 * @throws RpcError where it is refused or a fault hits it
 */
export async function answered<Response>(
  rpc: string,
  parts: CallParts,
  request: unknown,
  handle: () => Response | Promise<Response>,
): Promise<Response> {
  const site = { rpc, resource: resourceOf(request) };
  const before = beforeCall(site, parts);
  if (before !== undefined) await before;
  const handled = handle();
  const response = handled instanceof Promise ? await handled : handled;
  const after = afterCall(site, parts);
  if (after !== undefined) await after;
  return response;
}

/** One unary method on the wire, with every error as a gRPC status. */
export function unary<Request, Response>(
  rpc: string,
  parts: CallParts,
  handle: UnaryHandler<Request, Response>,
): grpc.handleUnaryCall<Request, Response> {
  return (call, answer) => {
    answered(rpc, parts, call.request, () => handle(call.request, call)).then(
      (response) => answer(null, response),
      (error: unknown) => answer(wireError(rpc, error)),
    );
  };
}

type CallSite = { readonly rpc: string; readonly resource: string };

/**
 * Nothing to wait for in most calls, and then no turn is lost.
 *
 * @throws RpcError where the call is to fail before it is applied
 */
export function beforeCall(site: CallSite, { faults, time }: CallParts): Promise<void> | undefined {
  const fail = () => {
    if (faults.roll('fail-before', site)) throw new RpcError(status.UNAVAILABLE, `fault: ${site.rpc} was not applied`);
  };
  const slow = faults.roll('slow-call', site);
  if (slow) return new Promise<void>((resolve) => time.after(slow.delayMs, resolve)).then(fail);
  fail();
  return undefined;
}

/** @throws RpcError where its answer is to be lost, or what it changed cannot be kept */
export function afterCall(site: CallSite, { faults, journal }: CallParts): Promise<void> | undefined {
  const lose = () => {
    if (faults.roll('answer-lost', site)) throw new RpcError(status.UNAVAILABLE, `fault: the answer of ${site.rpc} was lost`);
  };
  const saved = journal.saved();
  if (saved !== undefined) return saved.then(lose, notKept);
  lose();
  return undefined;
}

function notKept(error: unknown): never {
  throw new RpcError(status.UNAVAILABLE, `the data folder cannot be written: ${error instanceof Error ? error.message : String(error)}`);
}

/** What goes on the wire for whatever a handler threw. */
export function wireError(rpc: string, error: unknown): Partial<grpc.StatusObject> {
  if (error instanceof RpcError) {
    return { code: error.code, details: shortened(error.message), ...(error.metadata && { metadata: error.metadata }) };
  }
  console.error(`emulator defect in ${rpc}:`, error);
  const what = error instanceof Error ? error.message : String(error);
  return { code: status.INTERNAL, details: shortened(`emulator defect in ${rpc}: ${what}`) };
}

const longestDetails = 800;

/** A message may quote what the request held; a trailer above some KiB ends the connection, and half a character the process. */
function shortened(text: string): string {
  if (text.length <= longestDetails) return text.toWellFormed();
  const half = longestDetails / 2;
  return `${text.slice(0, half)}[… ${text.length} characters …]${text.slice(-half)}`.toWellFormed();
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

const codecOf = (side: 'request' | 'response', type: protobuf.Type) => {
  let converts: boolean | undefined;
  return {
    [`${side}Serialize`](message: object) {
      converts ??= holdsEnum(type);
      const bytes = type.encode(converts ? type.fromObject(message) : message).finish();
      return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes);
    },
    [`${side}Deserialize`](bytes: Buffer) {
      try {
        return type.toObject(type.decode(bytes), plain);
      } catch (error) {
        return malformed(`the request is no ${type.name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    },
  };
};

/**
 * Stands for a request that cannot be decoded: whoever reads a field of it throws INVALID_ARGUMENT. Thrown at once, grpc-js would answer
 * INTERNAL, which clients try again.
 */
const malformed = (reason: string): object =>
  new Proxy(
    {},
    {
      get: () => {
        throw invalidArgument(reason);
      },
    },
  );

/**
 * Whether a plain object must be converted before it is encoded: names of enums must, and half of the time goes with it. The one name of
 * an enum that has no other, as NULL_VALUE, is encoded as the 0 that it stands for.
 */
function holdsEnum(type: protobuf.Type, seen = new Set<protobuf.Type>()): boolean {
  if (seen.has(type)) return false;
  seen.add(type);
  return type.fieldsArray.some((field) => {
    const { resolvedType } = field.resolve();
    if (resolvedType instanceof protobuf.Enum) return Object.values(resolvedType.values).some((value) => value !== 0);
    return resolvedType !== null && holdsEnum(resolvedType, seen);
  });
}
