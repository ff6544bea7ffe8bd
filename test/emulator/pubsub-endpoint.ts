import { createServer, type IncomingHttpHeaders } from 'node:http';

export type PushRequest = { readonly headers: IncomingHttpHeaders; readonly body: Buffer };

export type PushEndpoint = {
  readonly url: string;
  readonly requests: readonly PushRequest[];
  /** What was posted so far, as text of each message. */
  readonly texts: readonly string[];
  /** Posts whose connection was given up without an answer. */
  readonly aborted: () => number;
  close(): void;
};

/** Answers each push with the status; 0 gives no answer. */
export async function pushEndpoint(status: number): Promise<PushEndpoint> {
  const requests: PushRequest[] = [];
  let aborted = 0;
  const server = createServer(async (request, response) => {
    response.on('close', () => {
      if (!response.writableEnded) aborted += 1;
    });
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    requests.push({ headers: request.headers, body: Buffer.concat(chunks) });
    if (status !== 0) response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`,
    requests,
    get texts() {
      return requests.map(({ body }) => Buffer.from(JSON.parse(body.toString()).message.data, 'base64').toString());
    },
    aborted: () => aborted,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
