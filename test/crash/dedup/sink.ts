import { createServer } from 'node:http';

/** Where handlers post: an effect is a post under the name of its cell. */
export type Sink = {
  readonly url: string;
  made(cell: string): number;
  /** The first post of the cell is counted and gets no answer before `release`: its handler is between claim and end. */
  hold(cell: string): void;
  /** Resolves with the first post of a held cell. */
  entered(cell: string): Promise<void>;
  release(cell: string): void;
  close(): void;
};

type Hold = { readonly entered: PromiseWithResolvers<void>; readonly released: PromiseWithResolvers<void> };

export async function openSink(): Promise<Sink> {
  const counts = new Map<string, number>();
  const holds = new Map<string, Hold>();
  const holdOf = (cell: string): Hold => {
    const found = holds.get(cell);
    if (!found) throw new Error(`${cell} is not held`);
    return found;
  };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const cell = Buffer.concat(chunks).toString();
    const count = (counts.get(cell) ?? 0) + 1;
    counts.set(cell, count);
    if (count === 1) {
      holds.get(cell)?.entered.resolve();
      await holds.get(cell)?.released.promise;
    }
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`,
    made: (cell) => counts.get(cell) ?? 0,
    hold: (cell) => void holds.set(cell, { entered: Promise.withResolvers(), released: Promise.withResolvers() }),
    entered: (cell) => holdOf(cell).entered.promise,
    release: (cell) => holdOf(cell).released.resolve(),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
