import type { IncomingMessage, RequestListener } from 'node:http';
import { jsonOf } from './json-body.ts';
import type { Emulator } from './server.ts';
import type { ManualTime, Time } from './time.ts';

type Answer = { readonly status: number; readonly body: unknown; readonly after?: () => Promise<unknown> };
type Asked = { readonly emulator: Emulator; readonly body: () => Promise<unknown> };

/** What a test in any language may ask over HTTP, on each of the three ports. Texts are answered as such, all else as JSON. */
const routes: Record<string, (asked: Asked) => Answer | Promise<Answer>> = {
  'GET /': () => ok('Ok\n'),
  'POST /shutdown': ({ emulator }) => ({ ...ok('Shutting down\n'), after: emulator.close }),
  'POST /reset': async ({ emulator }) => {
    await emulator.reset();
    return ok({ reset: true });
  },
  'GET /faults': ({ emulator: { faults } }) => ok({ seed: faults.seed, counts: faults.counts() }),
  'PUT /faults': async ({ emulator: { faults }, body }) => {
    const rules = await body();
    faults.replace(rules as Parameters<typeof faults.replace>[0]);
    return ok({ seed: faults.seed, rules: (rules as unknown[]).length });
  },
  'GET /backlog': ({ emulator: { pubsub } }) => ok({ messages: pubsub.backlog() }),
  'GET /oauth2/v3/certs': async ({ emulator: { identity } }) => ok(await identity.jwks()),
  'GET /time': ({ emulator: { time } }) => ok({ now: new Date(time.nowMs()).toISOString() }),
  'POST /time': async ({ emulator: { time }, body }) => {
    const advanceMs = ((await body()) as { advanceMs?: unknown } | null)?.advanceMs;
    if (!isManual(time)) return refused('the emulator keeps real time; start it with --time manual');
    if (!(typeof advanceMs === 'number' && advanceMs >= 0))
      return refused(`advanceMs is ${JSON.stringify(advanceMs)}; it must be a number from 0`);
    await time.advance(advanceMs);
    return ok({ now: new Date(time.nowMs()).toISOString() });
  },
};

const ok = (body: unknown): Answer => ({ status: 200, body });
const refused = (reason: string): Answer => ({ status: 400, body: reason });
const isManual = (time: Time): time is ManualTime => 'advance' in time;

export function control(emulator: () => Emulator | undefined): RequestListener {
  return (request, response) => {
    const send = ({ status, body, after }: Answer) => {
      const text = typeof body === 'string';
      response.writeHead(status, { 'content-type': text ? 'text/plain' : 'application/json' });
      response.end(text ? body : JSON.stringify(body), () => void after?.().catch(() => {}));
    };
    answer(emulator(), request).then(send, (error: unknown) => send(refused(error instanceof Error ? error.message : String(error))));
  };
}

async function answer(emulator: Emulator | undefined, request: IncomingMessage): Promise<Answer> {
  if (!emulator) return { status: 503, body: 'the emulator is starting' };
  const [path = '/'] = (request.url ?? '/').split('?');
  const asked = `${request.method} ${path}`;
  // As Google's Firestore emulator has it, for tools that empty a database between tests.
  const [, database] = /^DELETE \/emulator\/v1\/(projects\/[^/]+\/databases\/[^/]+)\/documents$/.exec(asked) ?? [];
  if (database !== undefined) {
    await emulator.reset(decodeURIComponent(database));
    return ok({});
  }
  const route = routes[asked];
  if (!route) return { status: 404, body: `there is no ${asked}; there are ${Object.keys(routes).join(', ')}` };
  return route({ emulator, body: () => jsonOf(request) });
}
