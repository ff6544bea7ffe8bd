import type { Target } from '../support/targets.ts';

export type RestAnswer = { readonly status: number; readonly body: unknown };

export const json = { 'content-type': 'application/json' };

/** One request on the port of Pub/Sub; JSON is taken apart, where the answer is JSON. */
export async function askRest(
  { address }: Target,
  path: string,
  body: unknown,
  { method = 'POST', headers = json }: { readonly method?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<RestAnswer> {
  const sent = method === 'GET' ? {} : { body: typeof body === 'string' ? Buffer.from(body) : JSON.stringify(body) };
  const response = await fetch(`http://${address}${path}`, { method, headers, ...sent });
  const text = await response.text();
  return { status: response.status, body: response.headers.get('content-type') === 'application/json' ? JSON.parse(text) : text };
}

export const publishPath = (topic: string) => `/v1/${topic}:publish`;

/** An error as Google's APIs have it in JSON. */
export const refusal = (status: number, name: string, message: unknown) => ({
  status,
  body: { error: { code: status, message, status: name } },
});
