import { createServer, type IncomingMessage, request as requestTo, type ServerResponse } from 'node:http';
import { type Cell, taskFor } from './cells.ts';
import { cellOfKey, type Role, taskHeader } from './plan.ts';
import type { Worker } from './worker-process.ts';

/** Where Pub/Sub pushes to and Cloud Tasks dispatches to, as if it were the front of both platforms: it chooses the process. */
export type Front = {
  readonly url: string;
  know(cells: readonly Cell[]): void;
  /** The ways of these cells in this role lead to the worker, until it is killed. */
  lead(cells: readonly Cell[], role: Role, worker: Worker): void;
  /** All other ways lead to these, in turn. */
  leadOthers(workers: readonly Worker[]): void;
  killed(worker: Worker): void;
  /** Sends to whom the way leads, in the name of a client; resolves to what is answered, or to nothing where that is an error. */
  post<Answer>(cell: Cell, path: '/call' | '/repair', body?: object): Promise<Answer | undefined>;
  /** No push and no task is under way. */
  isIdle(): boolean;
  /** How often which answer was given on which path. */
  answers(): string;
  close(): void;
};

type Asked = { readonly cell: string; readonly role: Role };

export async function openFront(): Promise<Front> {
  const cells = new Map<string, Cell>();
  const ways = new Map<string, Worker>();
  const statuses = new Map<string, number>();
  let others: readonly Worker[] = [];
  let turn = 0;
  let underWay = 0;
  const wayOf = ({ cell, role }: Asked) => ways.get(`${role} ${cell}`) ?? others[turn++ % others.length];
  const headerOf = (cell: Cell, role: Role) => ({ [taskHeader]: JSON.stringify(taskFor(cell, role)) });

  const forward = (incoming: IncomingMessage, body: Buffer, answer: ServerResponse) => {
    const { url: path = '', method, headers } = incoming;
    const asked = askedOf(path, JSON.parse(body.toString()));
    const cell = cells.get(asked.cell);
    const worker = wayOf(asked);
    underWay += 1;
    let isOver = false;
    const end = (status: number) => {
      if (isOver) return;
      isOver = true;
      underWay -= 1;
      statuses.set(`${path} ${status}`, (statuses.get(`${path} ${status}`) ?? 0) + 1);
      answer.writeHead(status).end();
    };
    if (!cell || !worker) return end(502);
    const { 'transfer-encoding': _, ...kept } = headers;
    const given = { ...kept, ...headerOf(cell, asked.role), 'content-length': body.length };
    const outgoing = requestTo(new URL(path, worker.url), { method, headers: given, agent: false }, (response) => {
      response.resume().once('end', () => end(response.statusCode ?? 502));
      response.once('error', () => end(502));
    });
    outgoing.once('error', () => end(502));
    outgoing.end(body);
  };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    forward(request, Buffer.concat(chunks), response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    know(known) {
      for (const cell of known) cells.set(cell.cell, cell);
    },
    lead(led, role, worker) {
      for (const { cell } of led) ways.set(`${role} ${cell}`, worker);
    },
    leadOthers(workers) {
      others = workers;
    },
    killed(worker) {
      for (const [way, leadsTo] of ways) if (leadsTo === worker) ways.delete(way);
    },
    async post<Answer>(cell: Cell, path: string, body: object = {}) {
      const { url = '' } = wayOf({ cell: cell.cell, role: 'client' }) ?? {};
      const headers = headerOf(cell, 'client');
      const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) }).catch(() => undefined);
      return response?.ok ? ((await response.json()) as Answer) : undefined;
    },
    isIdle: () => underWay === 0,
    answers: () => [...statuses].map(([answer, count]) => `${answer} ${count}`).join(', '),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

type Body = {
  readonly message?: { readonly attributes?: Readonly<Record<string, string>> };
  readonly key?: string;
  readonly scheduledForMs?: number;
  readonly dueAtMs?: number;
};

function askedOf(path: string, { message, key = '', scheduledForMs = 0, dueAtMs = 0 }: Body): Asked {
  if (path === '/push') return { cell: message?.attributes?.cell ?? '', role: 'function' };
  return { cell: cellOfKey(key), role: scheduledForMs < dueAtMs ? 'hop' : 'release' };
}
