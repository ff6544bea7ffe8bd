import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';

export type CountingProxy = {
  readonly address: string;
  /** The methods that were called since they were last taken, such as `/google.firestore.v1.Firestore/Commit`. */
  taken(): readonly string[];
  close(): void;
};

/** Stands before a gRPC server, passes every call on as it is, and knows of each one. */
export async function startCountingProxy(target: string): Promise<CountingProxy> {
  let calls: string[] = [];
  const onward = http2.connect(`http://${target}`);
  const server = http2.createServer();
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (incoming, headers) => {
    calls.push(String(headers[':path']));
    const outgoing = onward.request(headers);
    let trailers: http2.OutgoingHttpHeaders = {};
    outgoing.on('trailers', (received) => {
      trailers = received;
    });
    // gRPC tells an error in the headers alone, which then end the stream.
    outgoing.on('response', (received, flags) => {
      const endStream = (flags & http2.constants.NGHTTP2_FLAG_END_STREAM) !== 0;
      incoming.respond(received, { endStream, waitForTrailers: !endStream });
      if (!endStream) outgoing.pipe(incoming);
    });
    incoming.on('wantTrailers', () => incoming.sendTrailers(trailers));
    incoming.on('error', () => outgoing.close());
    outgoing.on('error', () => incoming.close());
    incoming.pipe(outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    taken() {
      const taken = calls;
      calls = [];
      return taken;
    },
    close() {
      for (const session of sessions) session.destroy();
      onward.destroy();
      server.close();
    },
  };
}
