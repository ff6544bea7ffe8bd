import type { IncomingMessage, RequestListener } from 'node:http';
import { answered, type CallParts, invalidArgument, notFound, RpcError, status, wireError } from '../grpc.ts';
import { jsonOf } from '../json-body.ts';
import type { Identity } from '../oidc.ts';
import { messagesIn } from './publish-body.ts';
import type { PublishRequest } from './publisher-methods.ts';

export type RestParts = CallParts & {
  readonly identity: Identity;
  readonly publish: (request: PublishRequest) => { readonly messageIds: readonly string[] };
};

const rpc = 'Publisher.Publish';
const publishing = /^POST \/v1\/(projects\/[^/]+\/topics\/[^/]+):publish$/;
/** Either lets a token publish. */
const scopes = ['https://www.googleapis.com/auth/cloud-platform', 'https://www.googleapis.com/auth/pubsub'];

/** The codes that a publish ends with; any other is a defect of the emulator. */
const httpStatus: Readonly<Record<number, number>> = {
  [status.INVALID_ARGUMENT]: 400,
  [status.UNAUTHENTICATED]: 401,
  [status.PERMISSION_DENIED]: 403,
  [status.NOT_FOUND]: 404,
  [status.UNAVAILABLE]: 503,
};

/** Whether a request is for the REST side of Pub/Sub, of which there is one method. */
export const isRest = ({ url = '' }: IncomingMessage): boolean => /^\/v1(\/|\?|$)/.test(url);

/**
 * `POST /v1/projects/P/topics/T:publish`, by which a task publishes at its time without a handler: the gRPC method with its checks and
 * faults, in JSON.
 */
export function createRest(parts: RestParts): RequestListener {
  return (request, response) => {
    const send = (code: number, body: object) => {
      response.writeHead(code, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    published(request, parts).then(
      (answer) => send(200, answer),
      (error: unknown) => {
        const { code = status.INTERNAL, details: message } = wireError(rpc, error);
        const answer = httpStatus[code] ?? 500;
        send(answer, { error: { code: answer, message, status: status[code] } });
      },
    );
  };
}

async function published(request: IncomingMessage, parts: RestParts): Promise<object> {
  const { method, url = '', headers } = request;
  const asked = `${method} ${url.split('?')[0]}`;
  const [, path] = publishing.exec(asked) ?? [];
  if (path === undefined) throw notFound(`there is no ${asked}; there is POST /v1/projects/PROJECT/topics/TOPIC:publish`);
  checkAccess(headers.authorization, parts.identity);
  checkType(headers['content-type']);
  const body = await jsonOf(request).catch((error: Error) => Promise.reject(invalidArgument(error.message)));
  const message: PublishRequest = { topic: nameIn(path), messages: messagesIn(body) };
  return answered(rpc, parts, message, () => parts.publish(message));
}

/** Nobody has to say who calls, as in Google's emulator; who does must have a token that production would take. */
function checkAccess(authorization: string | undefined, identity: Identity): void {
  if (authorization === undefined) return;
  const access = identity.accessOf(/^Bearer (.+)$/i.exec(authorization)?.[1] ?? '');
  if (!access)
    throw new RpcError(
      status.UNAUTHENTICATED,
      'the Authorization is no access token of this emulator, or one that expired; an OIDC token is none',
    );
  if (!access.scope.split(' ').some((scope) => scopes.includes(scope)))
    throw new RpcError(status.PERMISSION_DENIED, `the access token has the scope "${access.scope}"; it needs ${scopes.join(' or ')}`);
}

/** None is taken, which is what a task sets by itself, and any other is not, as Google's emulator has it (`docs/facts.md` A.11). */
function checkType(contentType: string | undefined): void {
  if (contentType !== undefined && !/^application\/json *(;|$)/i.test(contentType))
    throw invalidArgument(`the Content-Type is "${contentType}"; it must be application/json or absent`);
}

function nameIn(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw invalidArgument(`"${path}" is no name: it holds a % that stands for nothing`);
  }
}
