import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';

export type AppEngineFront = { readonly url: string; close(): Promise<void> };

/** What only App Engine itself may tell an app, and what belongs to one connection. */
const notFromOutside = /^(x-appengine-.*|x-google-.*|connection|keep-alive|upgrade)$/i;

/** The public side of an App Engine app, on loopback: passes requests on without the headers that outsiders may not set. */
export async function createAppEngineFront({ target }: { target: string }): Promise<AppEngineFront> {
  const server = createServer((incoming, answer) => forward(incoming, answer, target));
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the App Engine front has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function forward(incoming: IncomingMessage, answer: ServerResponse, target: string): void {
  const { hostname, port } = new URL(target);
  const { method, url, rawHeaders } = incoming;
  const outgoing = request({ hostname, port, method, path: url, headers: kept(rawHeaders), setHost: false, agent: false }, (response) => {
    answer.writeHead(response.statusCode ?? 502, response.statusMessage, kept(response.rawHeaders));
    response.pipe(answer);
    response.on('error', () => answer.destroy());
  });
  outgoing.on('error', (error) => {
    if (answer.headersSent) answer.destroy();
    else answer.writeHead(502, { 'content-type': 'text/plain' }).end(`The App Engine app at ${target} does not answer: ${error.message}\n`);
  });
  answer.on('close', () => outgoing.destroy());
  incoming.pipe(outgoing);
}

/** Raw headers, so that names keep their case and repeated ones stay apart. */
function kept(rawHeaders: readonly string[]): string[] {
  const pairs = rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? '']] : []));
  return pairs.filter(([name = '']) => !notFromOutside.test(name)).flat();
}
