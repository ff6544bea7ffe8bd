import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parseItem } from 'structured-headers';
import { ToolkitError } from '../errors.ts';

/** What is read of a request of Express. */
export type HttpRequest = IncomingMessage & {
  readonly originalUrl: string;
  readonly baseUrl: string;
  readonly path: string;
  readonly route?: { readonly path?: unknown } | undefined;
  readonly body?: unknown;
};

/** A request that is answered, and not handled. */
export type Problem = {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly retryAfterMs?: number | undefined;
};
export type Identity = { readonly key: string; readonly fingerprint: string };

const mostKeyChars = 255;
/** What clients send without quotes: no comma, which joins two headers, and no semicolon, which begins a parameter. */
const bareKey = /^[\w!#$%&'*+.^`|~:/=@?()<>[\]{}-]+$/;

const badRequest = (title: string, detail: string): Problem => ({ status: 400, title, detail });

/**
 * The key of the header: a string in quotes (RFC 8941; parameters mean nothing here), or the same text without quotes.
 */
export function readKey(values: readonly string[] | undefined): string | Problem {
  const [text = '', ...more] = values ?? [];
  if (text.trim() === '') return badRequest('Idempotency-Key is missing', 'This operation needs the header Idempotency-Key.');
  if (more.length > 0) return badRequest('Idempotency-Key is sent twice', `It must be sent once; it came ${more.length + 1} times.`);
  const key = bareKey.test(text) ? text : quotedKey(text);
  if (key === undefined || key.trim() === '')
    return badRequest('Idempotency-Key is no string', 'It must be a string of ASCII characters in double quotes that is not empty.');
  if (key.length > mostKeyChars)
    return badRequest('Idempotency-Key is too long', `It has ${key.length} characters; at most ${mostKeyChars} are allowed.`);
  return key;
}

function quotedKey(text: string): string | undefined {
  try {
    const [value] = parseItem(text);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The key under its operation and its scope, and what else must be equal where the same key comes again: the URL and the body.
 * @throws INVALID_SETTINGS where the scope is no name; without one, tenants would share their keys
 */
export function identityOf(request: HttpRequest, headerKey: string, scope: string | null): Identity | Problem {
  if (scope === '' || (scope !== null && typeof scope !== 'string'))
    throw new ToolkitError('INVALID_SETTINGS', `scopeOf answered ${JSON.stringify(scope)}; it must name whose key it is`);
  const { method = '', originalUrl, baseUrl, path, route } = request;
  const body = bodyOf(request);
  if (typeof body === 'object' && 'status' in body) return body;
  const digest = createHash('sha256')
    .update(JSON.stringify([method, originalUrl]))
    .update('\0')
    .update(body);
  return { key: JSON.stringify([method, `${baseUrl}${route?.path ?? path}`, scope, headerKey]), fingerprint: digest.digest('hex') };
}

/** The body as its parser left it: raw, or JSON whose members have one order. */
function bodyOf({ body, headers }: HttpRequest): Uint8Array | string | Problem {
  if (body instanceof Uint8Array || typeof body === 'string') return body;
  if (body !== undefined) return canonical(body);
  const isSent = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (!isSent) return '';
  return { status: 415, title: 'The body cannot be read', detail: `No body of type ${headers['content-type'] ?? 'unknown'} is read here.` };
}

function canonical(body: unknown): string | Problem {
  try {
    return JSON.stringify(body, (_, value: unknown) =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
        : value,
    );
  } catch {
    return badRequest('The body cannot be compared', 'It is nested too deeply, or it is no JSON.');
  }
}
