import type { Request, Response } from '@google-cloud/functions-framework';
import type { PushAnswer, PushRequest } from '../src/shared/transports/push.ts';

export type HttpFunction = (request: Request, response: Response) => Promise<void>;

/** Pushes as an HTTP function; a command is a path that a schedule posts to. */
export function pushFunction(
  push: (request: PushRequest) => Promise<PushAnswer>,
  commands: Readonly<Record<string, () => Promise<object>>> = {},
): HttpFunction {
  return async (request, response) => {
    const command = request.method === 'POST' && commands[request.path];
    if (command) {
      response.status(200).json(await command());
      return;
    }
    if (request.method !== 'POST') {
      response.status(405).send('only POST is answered');
      return;
    }
    const { status, text } = await push({ headers: request.headers, body: request.body });
    response.status(status).send(text);
  };
}
