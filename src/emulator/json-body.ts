import type { IncomingMessage } from 'node:http';

/** @throws Error where the whole body is no JSON */
export async function jsonOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw new Error('the body is no JSON');
  }
}
