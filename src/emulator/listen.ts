import http, { type RequestListener } from 'node:http';
import net, { type Socket } from 'node:net';
import grpc from '@grpc/grpc-js';

/** Large enough for a 10 MB request and its frame; grpc-js refuses above 4 MiB by itself, and clients retry that for minutes. */
const receiveLimitBytes = 32 * 1024 * 1024;

export type ListeningServer = { readonly address: string; readonly server: grpc.Server; close(): Promise<void> };

/** How an HTTP/2 connection begins; whatever begins otherwise is HTTP/1.1. */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/**
 * One port on loopback for gRPC and for plain HTTP, as Google's emulators have; port 0 takes any free one.
 *
 * @throws Error that names a port in use
 */
export async function listen(register: (server: grpc.Server) => void, port: number, onRequest?: RequestListener): Promise<ListeningServer> {
  const server = new grpc.Server({
    'grpc.max_receive_message_length': receiveLimitBytes,
    'grpc.max_send_message_length': -1,
    // Statistics of every call and connection that nobody reads.
    'grpc.enable_channelz': 0,
  });
  register(server);
  const calls = server.createConnectionInjector(grpc.ServerCredentials.createInsecure());
  const plain = http.createServer(onRequest ?? ((_, response) => void response.writeHead(404).end()));
  const sockets = new Set<Socket>();
  const front = net.createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    handOver(socket, (isHttp2) => (isHttp2 ? calls.injectConnection(socket) : plain.emit('connection', socket)));
  });
  await new Promise<void>((resolve, reject) => {
    front.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? new Error(`port ${port} is in use`) : error),
    );
    front.listen(port, '127.0.0.1', resolve);
  });
  const address = front.address();
  return {
    address: `127.0.0.1:${typeof address === 'object' && address ? address.port : port}`,
    server,
    close: () =>
      new Promise((resolve) => {
        front.close(() => resolve());
        server.forceShutdown();
        plain.closeAllConnections();
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** Reads no more than it needs to tell, and gives it back to whoever takes the connection. */
function handOver(socket: Socket, take: (isHttp2: boolean) => void): void {
  let head = Buffer.alloc(0);
  const read = () => {
    const chunk: Buffer | null = socket.read();
    if (!chunk) return;
    head = Buffer.concat([head, chunk]);
    const known = Math.min(head.length, preface.length);
    const isHttp2 = head.subarray(0, known).equals(preface.subarray(0, known));
    if (isHttp2 && known < preface.length) return;
    socket.off('readable', read);
    socket.unshift(head);
    take(isHttp2);
  };
  socket.on('readable', read);
}
