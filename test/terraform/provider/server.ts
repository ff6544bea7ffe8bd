import { Server, ServerCredentials } from '@grpc/grpc-js';
import { serviceOf } from '../../../src/emulator/grpc.ts';
import { type Cloud, createCloud, type Resource, type WritableCloud } from './cloud.ts';
import type { Hooks } from './hooks.ts';
import type { Project } from './made.ts';
import { createMethods } from './methods.ts';
import { text } from './values.ts';
import { protos } from './wire.ts';

export type ProviderOptions = {
  readonly hooks?: Hooks;
  /** What the project holds already: `{ type: 'google_pubsub_topic', values: { name: 'orders', project: 'p' } }`. */
  readonly existing?: readonly Resource[];
};

export type Provider = {
  /** What makes Terraform use this provider for hashicorp/google, in place of downloading one. */
  readonly env: Readonly<Record<string, string>>;
  readonly cloud: Cloud;
  close(): Promise<void>;
};

const address = 'registry.terraform.io/hashicorp/google';
export const projectNumber = '123456789012';
const elsewhere: Project = { id: 'no-project', number: projectNumber, region: 'europe-west1' };

/** A provider of hashicorp/google on loopback; its cloud lives as long as it does. */
export async function startProvider({ hooks = {}, existing = [] }: ProviderOptions = {}): Promise<Provider> {
  let project = elsewhere;
  const cloud: WritableCloud = createCloud(() => project, existing);
  const methods = createMethods({
    cloud,
    hooks,
    configure(config) {
      project = { ...elsewhere, id: text(config.project) || elsewhere.id, region: text(config.region) || elsewhere.region };
    },
  });
  const server = new Server({ 'grpc.max_receive_message_length': -1 });
  const handlers = Object.entries(methods).map(([name, handle]) => [
    name,
    (call: { request: never }, answer: (error: Error | null, response?: object) => void) => {
      Promise.resolve()
        .then(() => handle(call.request))
        .then(
          (response) => answer(null, response),
          (error) => answer(error),
        );
    },
  ]);
  server.addService(serviceOf(protos, 'tfplugin5.Provider'), Object.fromEntries(handlers));
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound))),
  );
  const reattach = {
    Protocol: 'grpc',
    ProtocolVersion: 5,
    Pid: process.pid,
    Test: true,
    Addr: { Network: 'tcp', String: `127.0.0.1:${port}` },
  };
  return {
    env: { TF_REATTACH_PROVIDERS: JSON.stringify({ [address]: reattach }) },
    cloud,
    async close() {
      server.forceShutdown();
    },
  };
}
