import { expect, test } from 'vitest';
import type { Exception, Target } from '../support/targets.ts';
import { type Answer, methodNamed, type WireClient, type WireMethod } from './wire-client.ts';

/** A request as it stands on the wire, or several on one stream. */
export type Asked = { readonly method: string; readonly request: object | readonly object[]; readonly deadlineMs?: number };

export type Refused = Asked & {
  readonly what: string;
  /** INVALID_ARGUMENT where it is not said. */
  readonly code?: string;
  /** What the message names: the field, the value it had, the limit. */
  readonly says: readonly string[];
  readonly google?: Exception;
  /** Where the request itself takes time on its way. */
  readonly withinMs?: number;
};

export type Taken = Asked & { readonly what: string; readonly google?: Exception };

/** What a busy machine adds to an answer is not the emulator's; one of so many must be in time. */
const tries = 5;

export function asking(client: WireClient, methods: readonly WireMethod[]): (asked: Asked) => Promise<Answer> {
  return ({ method, request, deadlineMs = 10_000 }) =>
    client.ask(methodNamed(methods, method), Array.isArray(request) ? request : [request], deadlineMs);
}

/** Makes what the rows are about. */
export async function prepare(ask: (asked: Asked) => Promise<Answer>, steps: readonly Asked[]): Promise<void> {
  for (const step of steps) expect(await ask(step), step.method).toMatchObject({ code: 'OK' });
}

/** The refusals of a service, one test each. */
export function refuses(target: Target, ask: (asked: Asked) => Promise<Answer>, rows: readonly Refused[]): void {
  for (const { what, code = 'INVALID_ARGUMENT', says, google, withinMs = 100, ...asked } of rows) {
    if (target.name === 'google' && google) continue;
    test(`refuses ${what}`, { meta: { target: target.name } }, async () => {
      let answer = await ask(asked);
      expect(answer).toMatchObject({ code });
      if (target.name === 'google') return;
      for (const word of says) expect(answer.details).toContain(word);
      for (let left = tries; left > 0 && answer.tookMs >= withinMs; left--) answer = await ask(asked);
      expect(answer.tookMs).toBeLessThan(withinMs);
    });
  }
}

/** The other side of each limit. */
export function takes(target: Target, ask: (asked: Asked) => Promise<Answer>, rows: readonly Taken[]): void {
  for (const { what, google, ...asked } of rows) {
    if (target.name === 'google' && google) continue;
    test(`takes ${what}`, { meta: { target: target.name } }, async () => {
      expect(await ask(asked)).toMatchObject({ code: 'OK', details: expect.any(String) });
    });
  }
}
