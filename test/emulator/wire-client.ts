import grpc from '@grpc/grpc-js';
import type protobuf from 'protobufjs';
import { afterAll } from 'vitest';
import { readProtos } from '../../src/emulator/grpc.ts';

export type WireMethod = {
  readonly name: string;
  readonly path: string;
  readonly requestType: protobuf.Type;
  readonly responseType: protobuf.Type;
  readonly takesStream: boolean;
};

/** How a call ended, and everything it answered before. */
export type Answer = {
  readonly code: string | undefined;
  readonly details: string;
  readonly messages: readonly Record<string, unknown>[];
  readonly tookMs: number;
};

/** Below the codecs of grpc-js: bodies are bytes, so that they need not be messages at all. */
export type WireClient = {
  send(method: WireMethod, bodies: readonly Uint8Array[], deadlineMs?: number): Promise<Answer>;
  /** The same with messages of the method's type. */
  ask(method: WireMethod, requests: readonly object[], deadlineMs?: number): Promise<Answer>;
  close(): void;
};

export function methodsOf(protos: protobuf.Root, service: string): WireMethod[] {
  return protos.lookupService(service).methodsArray.map((method) => {
    method.resolve();
    const { name, resolvedRequestType: requestType, resolvedResponseType: responseType, requestStream } = method;
    if (!requestType || !responseType) throw new Error(`the protos do not know the types of ${service}.${name}`);
    return { name, path: `/${service}/${name}`, requestType, responseType, takesStream: requestStream === true };
  });
}

export function methodNamed(methods: readonly WireMethod[], name: string): WireMethod {
  const found = methods.find((method) => method.name === name);
  if (!found) throw new Error(`there is no method ${name}`);
  return found;
}

const encoded = ({ requestType }: WireMethod, request: object): Uint8Array => requestType.encode(requestType.fromObject(request)).finish();

const asBytes = (bytes: Uint8Array) => Buffer.from(bytes);

export function wireClient(address: string): WireClient {
  const client = new grpc.Client(address, grpc.credentials.createInsecure());
  // On the wire a call of one message is a stream of one message.
  const send: WireClient['send'] = ({ path, responseType }, bodies, deadlineMs = 2_000) =>
    new Promise((resolve) => {
      const startedAtMs = performance.now();
      const call = client.makeBidiStreamRequest(path, asBytes, asBytes, new grpc.Metadata(), { deadline: Date.now() + deadlineMs });
      const messages: Record<string, unknown>[] = [];
      call.on('data', (bytes: Buffer) => messages.push(responseType.toObject(responseType.decode(bytes), { longs: String, arrays: true })));
      // The code comes with `status`.
      call.on('error', () => undefined);
      call.on('status', ({ code, details }) =>
        resolve({ code: grpc.status[code], details, messages, tookMs: performance.now() - startedAtMs }),
      );
      for (const body of bodies) call.write(body);
      call.end();
    });
  return {
    send,
    ask: (method, requests, deadlineMs) =>
      send(
        method,
        requests.map((request) => encoded(method, request)),
        deadlineMs,
      ),
    close: () => client.close(),
  };
}

export type WireService = {
  readonly client: WireClient;
  readonly methods: readonly WireMethod[];
  ask(method: string, request: object): Promise<Answer>;
};

const services = {
  pubsub: ['@google-cloud/pubsub', 'protos.json', 'google.pubsub.v1.Publisher', 'google.pubsub.v1.Subscriber'],
  firestore: ['@google-cloud/firestore', 'v1.json', 'google.firestore.v1.Firestore'],
  tasks: ['@google-cloud/tasks', 'protos.json', 'google.cloud.tasks.v2.CloudTasks'],
} as const;

/** All methods of a service at an address, until the tests of the file are over. */
export function wireService(name: keyof typeof services, address: string): WireService {
  const [packageName, file, ...names] = services[name];
  const protos = readProtos(packageName, file);
  const methods = names.flatMap((service) => methodsOf(protos, service));
  const client = wireClient(address);
  afterAll(() => client.close());
  return { client, methods, ask: (method, request) => client.ask(methodNamed(methods, method), [request]) };
}
