import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { type Exception, statement, type Target } from '../support/targets.ts';
import { arbitraryRequest, type Plausible } from './arbitrary-requests.ts';
import { type Answer, type WireClient, type WireMethod, wireClient } from './wire-client.ts';

export type FuzzedService = {
  readonly name: string;
  readonly client: WireClient;
  readonly methods: readonly WireMethod[];
  readonly plausible: Plausible;
  /** Makes what the requests before may have deleted. */
  prepare(): Promise<void>;
  /** A call that succeeds on a server in order. */
  live(): Promise<Answer>;
  /** The methods that wait for something to happen, as long as their client does. */
  readonly waiting?: readonly string[];
  /** What this service may answer besides. */
  readonly alsoAllowed?: readonly string[];
};

/** What a client's mistake may answer: nothing that a client tries again. */
const permanent = ['OK', 'INVALID_ARGUMENT', 'NOT_FOUND', 'ALREADY_EXISTS', 'FAILED_PRECONDITION', 'OUT_OF_RANGE', 'UNIMPLEMENTED'];
const waitMs = 100;

/** Always the same requests, unless asked for more of them or for others; a failure prints seed and path. */
export function fuzzing(runs: number): fc.Parameters<unknown> {
  return { numRuns: Number(process.env.FUZZ_RUNS ?? runs), seed: Number(process.env.FUZZ_SEED ?? 1) };
}

/** `FUZZ_RUNS` of a thousand and more take minutes. */
export const fuzzTimeoutMs = 600_000;

export function expectPermanent({ code, details }: Answer, alsoAllowed: readonly string[] = []): void {
  expect([...permanent, ...alsoAllowed], `answered with ${details}`).toContain(code);
  if (code !== 'OK') expect(details).not.toBe('');
  if (code === 'UNIMPLEMENTED') expect(details).toMatch(/^the embedded emulator does not support \w/);
}

/** The request of which no field is set, for every method of a service. */
export function takesEmptyRequests(target: Target, methods: readonly WireMethod[], google?: Exception): void {
  const run = async () => {
    const client = wireClient(target.address);
    try {
      for (const method of methods) {
        const answer = await client.ask(method, [{}]);
        expect(permanent, `${method.name} answers ${answer.code}: ${answer.details}`).toContain(answer.code);
      }
    } finally {
      client.close();
    }
  };
  statement(target, 4, 'no method answers an empty request with a code that is tried again', run, google);
}

/** Every method of a service with requests of its type, and with bodies of no type. */
export function fuzzService({ client, methods, plausible, live, waiting = [], alsoAllowed = [], ...service }: FuzzedService): void {
  const judged = async (method: WireMethod, bodies: readonly Uint8Array[]) => {
    const waits = waiting.includes(method.name);
    const answer = await client.send(method, bodies, waits ? waitMs : undefined);
    expectPermanent(answer, waits ? [...alsoAllowed, 'DEADLINE_EXCEEDED'] : alsoAllowed);
    expect(await live()).toMatchObject({ code: 'OK' });
    return answer.code;
  };

  describe(`${service.name}, requests that nobody wrote`, () => {
    beforeEach(service.prepare);
    for (const method of methods) {
      const requests = fc.array(arbitraryRequest(method.requestType, plausible), { minLength: 1, maxLength: method.takesStream ? 4 : 1 });
      test(`${method.name} answers a permanent code to any request`, { timeout: fuzzTimeoutMs }, async () => {
        const property = fc.asyncProperty(requests, async (asked) => {
          await judged(
            method,
            asked.map((request) => method.requestType.encode(method.requestType.fromObject(request)).finish()),
          );
        });
        await fc.assert(property, fuzzing(30));
      });
    }

    test('a body that is no request answers a permanent code, whatever the method', { timeout: fuzzTimeoutMs }, async () => {
      const property = fc.asyncProperty(fc.constantFrom(...methods.map(({ name }) => name)), randomBytes, async (name, body) => {
        for (const method of methods) if (method.name === name) await judged(method, [body]);
      });
      await fc.assert(property, fuzzing(200));
    });
  });
}

const randomBytes = fc.oneof(
  fc.uint8Array({ maxLength: 60 }),
  // A tag and a length that promise more than there is.
  fc
    .tuple(fc.integer({ min: 1, max: 30 }), fc.uint8Array({ maxLength: 20 }))
    .map(([tag, rest]) => Uint8Array.of(tag * 8 + 2, 127, ...rest)),
);
