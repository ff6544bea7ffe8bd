import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { OAuth2Client } from 'google-auth-library';
import type { Identity } from '../../../src/emulator/oidc.ts';

export type Front = {
  readonly url: string;
  /** Requests by what became of them: `passed`, or why one was refused. */
  readonly counts: ReadonlyMap<string, number>;
  close(): Promise<void>;
};

export type FrontParts = {
  readonly identity: Identity;
  /** Whether a service account may call this service: whether somebody granted it `run.invoker`. */
  readonly mayInvoke: (email: string) => boolean;
  /** Where the service listens. */
  readonly target: () => string;
};

const issuers = ['https://accounts.google.com'];
/** Belong to one connection. */
const notPassedOn = new Set(['connection', 'keep-alive', 'transfer-encoding', 'host', 'content-length', 'authorization']);

/**
 * What stands in front of a service on Cloud Run that takes no anonymous calls: a request goes through with a token of Google's, made for this
 * URL, of an account that may invoke the service.
 */
export async function startFront({ identity, mayInvoke, target }: FrontParts): Promise<Front> {
  const counts = new Map<string, number>();
  const verifier = new OAuth2Client();
  let url = '';
  const refusal = async (authorization: string | undefined): Promise<string | undefined> => {
    const token = /^Bearer (.+)$/.exec(authorization ?? '')?.[1];
    if (!token) return 'no token';
    try {
      const ticket = await verifier.verifySignedJwtWithCertsAsync(token, await certificates(identity), url, issuers);
      const email = ticket.getPayload()?.email ?? '';
      return mayInvoke(email) ? undefined : `${email} may not invoke`;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  };
  const server: Server = createServer(async (request, answer) => {
    try {
      const reason = await refusal(request.headers.authorization);
      counts.set(reason ?? 'passed', (counts.get(reason ?? 'passed') ?? 0) + 1);
      if (reason) {
        answer.writeHead(403).end(reason);
        return;
      }
      const passed = await fetch(target() + request.url, {
        method: request.method ?? 'POST',
        headers: headersOf(request),
        body: request.method === 'GET' ? null : Uint8Array.from(await bodyOf(request)),
      });
      answer.writeHead(passed.status).end(Buffer.from(await passed.arrayBuffer()));
    } catch {
      answer.writeHead(503).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the front has no port');
  url = `http://127.0.0.1:${address.port}`;
  return {
    url,
    counts,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function certificates(identity: Identity): Promise<Record<string, string>> {
  const { keys } = (await identity.jwks()) as { readonly keys: readonly (JsonWebKey & { readonly kid: string })[] };
  return Object.fromEntries(
    keys.map((key) => [key.kid, String(createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' }))]),
  );
}

const headersOf = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (typeof value === 'string' && !notPassedOn.has(name) ? [[name, value]] : [])),
  );

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
