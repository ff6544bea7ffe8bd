import type { AddressInfo } from 'node:net';
import type { Express, RequestHandler } from 'express';
import { expect, onTestFinished } from 'vitest';
import { type DelayStack, type delayStacks, hour } from './delay-stack.ts';

/** Stands in front of a release: keeps what it answered each dispatch, and loses so many of the first answers. */
export function watchedDispatches(lost = 0) {
  const statuses: number[] = [];
  const retries: (string | undefined)[] = [];
  const parser: RequestHandler = (request, response, next) => {
    if (retries.push(request.get('x-appengine-taskretrycount')) <= lost) Object.assign(response, { end: () => response.destroy() });
    response.on('close', () => statuses.push(response.statusCode));
    next();
  };
  return { parser, statuses, retries };
}

/** Posts to a release past its queue, and resolves with the status. */
export async function callsOf(app: Express) {
  const server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/tasks/release`;
  return async (body: string | Buffer, headers: Record<string, string>): Promise<number> => {
    const response = await fetch(url, {
      method: 'POST',
      body: body.toString(),
      headers: { 'content-type': 'application/json', ...headers },
    });
    await response.text();
    return response.status;
  };
}

/** What a test does with one message, and sees of it. */
export function oneMessage({ time, emulator }: Pick<Awaited<ReturnType<typeof delayStacks>>, 'time' | 'emulator'>) {
  /** Lets time pass until so many tasks wait and no delivery is left. */
  const armed = ({ until, subscription, pending, underWay }: DelayStack, tasks: number) =>
    until(() => expect([emulator.pubsub.backlog(subscription), underWay(), pending().length]).toEqual([0, 0, tasks]), { tickMs: 500 });
  return {
    armed,
    /** Publishes the message `k`, due in an hour, and resolves with that instant once its task waits. */
    async scheduled(stack: DelayStack, attributes: Record<string, string>, data = 'body'): Promise<number> {
      const dueAtMs = time.nowMs() + hour;
      await stack.publish({ 'ptk-key': 'k', 'ptk-delay-ms': String(hour), ...attributes }, data);
      await armed(stack, 1);
      return dueAtMs;
    },
  };
}

/** What came, by data, key and instant, and what is left anywhere. */
export const outcomeOf = async ({ came, letters, pending, ledger }: DelayStack) => ({
  came: (await came()).map(({ data, attributes, atMs }) => [`${data}`, attributes['ptk-key'], atMs]),
  letters: await letters(),
  tasks: pending().length,
  entries: (await ledger.count('pending')) + (await ledger.count('releasing')),
});

/** Each of these instants brought the message once, and nothing is left of it. */
export const cameAt = (...atMs: readonly number[]) => ({
  ...{ came: atMs.map((instant) => ['body', 'k', instant]), letters: [], tasks: 0, entries: 0 },
});
