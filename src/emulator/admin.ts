import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Emulator } from './server.ts';

export type Admin = { readonly address: string; close(): Promise<void> };

/**
 * What a test in another process may ask, as JSON on loopback: `GET /faults` the seed and how often each fault fired,
 * `PUT /faults` other rules, `GET /backlog` the messages without an ack over all subscriptions.
 */
export async function serveAdmin(emulator: Emulator, port: number): Promise<Admin> {
  const server = createServer((request, response) => {
    route(emulator, request, response).catch((error: unknown) => {
      response.writeHead(400).end(error instanceof Error ? error.message : String(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = server.address();
  return {
    address: `127.0.0.1:${typeof address === 'object' && address ? address.port : port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function route({ faults, pubsub }: Emulator, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const asked = `${request.method} ${request.url}`;
  const answer = (value: unknown) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  if (asked === 'GET /faults') return void answer({ seed: faults.seed, counts: faults.counts() });
  if (asked === 'GET /backlog') return void answer({ messages: pubsub.backlog() });
  if (asked !== 'PUT /faults') return void response.writeHead(404).end('GET /faults, PUT /faults or GET /backlog');
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const rules: unknown = JSON.parse(Buffer.concat(chunks).toString());
  if (!Array.isArray(rules)) throw new Error('PUT /faults takes a JSON array of rules');
  faults.replace(rules);
  answer({ rules: rules.length });
}
