import { createServer } from 'node:http';
import type { Post } from './plan.ts';

export type Begin = Pick<Post, 'worker' | 'seq' | 'key'>;

/** Where handlers post that they begin and end; an effect is a begin. */
export type Sink = {
  readonly url: string;
  /** In their order. */
  begins(cell: string): readonly Begin[];
  /** Numbers that began while another run of their stream was in flight. */
  overlaps(cell: string): readonly number[];
  /** The first begin of the number gets no answer before its release. */
  hold(cell: string, seq: number): void;
  entered(cell: string, seq: number): Promise<void>;
  release(cell: string, seq: number): void;
  /** The worker is killed, or has outlived its leases: no run of it is in flight any more. */
  gone(worker: string): void;
  close(): void;
};

type Hold = { readonly entered: PromiseWithResolvers<void>; readonly released: PromiseWithResolvers<void> };
type Stream = { readonly begins: Begin[]; readonly inFlight: Set<string>; readonly overlaps: number[] };

export async function openSink(): Promise<Sink> {
  const streams = new Map<string, Stream>();
  const holds = new Map<string, Hold>();
  const streamOf = (cell: string): Stream => {
    const stream = streams.get(cell) ?? { begins: [], inFlight: new Set(), overlaps: [] };
    streams.set(cell, stream);
    return stream;
  };
  const holdOf = (cell: string, seq: number): Hold => {
    const hold = holds.get(`${cell}/${seq}`) ?? { entered: Promise.withResolvers(), released: Promise.withResolvers() };
    holds.set(`${cell}/${seq}`, hold);
    return hold;
  };
  const posted = async ({ phase, worker, cell, seq, key }: Post) => {
    const { begins, inFlight, overlaps } = streamOf(cell);
    if (phase === 'end') return void inFlight.delete(worker);
    if (inFlight.size > 0) overlaps.push(seq);
    inFlight.add(worker);
    begins.push({ worker, seq, key });
    const hold = holds.get(`${cell}/${seq}`);
    if (!hold || begins.filter((begin) => begin.seq === seq).length > 1) return;
    hold.entered.resolve();
    await hold.released.promise;
  };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    await posted(JSON.parse(Buffer.concat(chunks).toString()));
    response.writeHead(204).end();
  });
  // A connection closed while a post is on its way would be a handler that failed.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`,
    begins: (cell) => streams.get(cell)?.begins ?? [],
    overlaps: (cell) => streams.get(cell)?.overlaps ?? [],
    hold: (cell, seq) => void holdOf(cell, seq),
    entered: (cell, seq) => holdOf(cell, seq).entered.promise,
    release(cell, seq) {
      holdOf(cell, seq).released.resolve();
    },
    gone(worker) {
      for (const { inFlight } of streams.values()) inFlight.delete(worker);
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
