import http from 'node:http';
import https from 'node:https';
import type { Identity } from '../oidc.ts';
import type { Time } from '../time.ts';
import { type DispatchRequest, type Outcome, redirected } from './dispatch.ts';

export type Sender = {
  /** Sends one attempt and waits for the whole answer; never rejects. */
  send(request: DispatchRequest, deadlineMs: number): Promise<Outcome>;
  /** Breaks off what is under way. */
  abort(): void;
  close(): void;
};

type Attempt = { current?: http.ClientRequest; over?: Outcome };

/** Idle connections are given up before a server does it: a request that meets a closed one would count as an attempt. */
const idleMs = 1_000;
const mostRedirects = 10;

/** Not by `fetch`, which takes three times as long and hides an answer below 200. */
export function createSender({ time, identity }: { time: Time; identity: Identity }): Sender {
  const settings = { keepAlive: true, timeout: idleMs };
  const plain = { request: http.request, agent: new http.Agent(settings) };
  const secure = { request: https.request, agent: new https.Agent(settings) };
  const underWay = new Set<Attempt>();

  const end = (attempt: Attempt, over: Outcome) => {
    attempt.over ??= over;
    attempt.current?.destroy();
  };
  const exchange = async ({ url, method, headers, body }: DispatchRequest, attempt: Attempt): Promise<Outcome> => {
    if (attempt.over) return attempt.over;
    const address = new URL(url);
    const { request, agent } = address.protocol === 'https:' ? secure : plain;
    const outgoing = request(address, { method, headers: { ...headers }, agent });
    attempt.current = outgoing;
    outgoing.end(body);
    return answerTo(outgoing);
  };
  const authorized = async (request: DispatchRequest): Promise<DispatchRequest> => {
    const { tokenFor, headers } = request;
    if (!tokenFor) return request;
    const token = 'scope' in tokenFor ? identity.accessToken(tokenFor) : await identity.token(tokenFor);
    return { ...request, headers: { ...headers, authorization: `Bearer ${token}` } };
  };
  const follow = async (request: DispatchRequest, attempt: Attempt): Promise<Outcome> => {
    let current = await authorized(request);
    for (let redirects = 0; ; redirects++) {
      const outcome = await exchange(current, attempt);
      const next = redirects < mostRedirects ? redirected(current, outcome) : undefined;
      if (!next || attempt.over) return attempt.over ?? outcome;
      current = next;
    }
  };
  const abort = () => {
    for (const attempt of underWay) end(attempt, { kind: 'unreached', reason: 'the emulator broke it off' });
  };
  return {
    async send(request, deadlineMs) {
      const attempt: Attempt = {};
      const cancel = time.after(deadlineMs, () => end(attempt, { kind: 'silent', reason: `no answer within ${deadlineMs} ms` }));
      underWay.add(attempt);
      try {
        return await follow(request, attempt);
      } catch (error) {
        return { kind: 'unreached', reason: error instanceof Error ? error.message : String(error) };
      } finally {
        cancel();
        underWay.delete(attempt);
      }
    },
    abort,
    close() {
      abort();
      plain.agent.destroy();
      secure.agent.destroy();
    },
  };
}

/** An app may end the connection after an answer below 200: then that is the whole answer. */
function answerTo(outgoing: http.ClientRequest): Promise<Outcome> {
  return new Promise((resolve) => {
    let informed: number | undefined;
    let response: http.IncomingMessage | undefined;
    let reason = 'the connection ended before the answer did';
    outgoing.on('information', ({ statusCode }) => {
      informed = statusCode;
    });
    outgoing.on('response', (incoming) => {
      response = incoming.on('error', () => undefined).resume();
    });
    outgoing.on('error', ({ message }) => {
      reason = message;
    });
    outgoing.on('close', () => {
      const { location, 'retry-after': retryAfter } = response?.headers ?? {};
      const status = response ? response.complete && response.statusCode : informed;
      resolve(status ? { kind: 'answered', status, location, retryAfter } : { kind: 'unreached', reason });
    });
  });
}
