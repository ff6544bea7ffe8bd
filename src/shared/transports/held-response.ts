import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** What a handler answered, whole. */
export type Answer = {
  readonly status: number;
  readonly statusMessage: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
};

export type HeldResponse = {
  /** Once the handler has ended its response; rejects if the handler destroyed it. */
  readonly answered: Promise<Answer>;
  /** The response is as it was before, with these headers or with those that it had then; nothing is sent by it. */
  letGo(headers?: OutgoingHttpHeaders): void;
};

/**
 * Keeps a response back: nothing that a handler writes leaves before `letGo`. The first end counts, and what is written
 * after it is dropped. A client that hangs up meanwhile is not told to the handler, whose pipes would stop half way.
 */
export function holdResponse(response: ServerResponse): HeldResponse {
  const { write, end, writeHead, flushHeaders, destroy, emit } = response;
  const before = response.getHeaders();
  const chunks: Buffer[] = [];
  let isBegun = false;
  let isGone = false;
  const { promise: answered, resolve: answer, reject: fail } = Promise.withResolvers<Answer>();
  // Nobody may be waiting yet.
  answered.catch(() => {});

  const begin = () => {
    if (isBegun) return;
    isBegun = true;
    // As Node does before the first byte: middleware hooks in here to set its last headers.
    response.writeHead(response.statusCode);
  };
  const take = (chunk: unknown, encoding: unknown): Buffer => {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encodingOf(encoding)) : Buffer.from(chunk as Uint8Array);
    chunks.push(bytes);
    return bytes;
  };

  const held = {
    writeHead(status: number, ...rest: unknown[]) {
      isBegun = true;
      response.statusCode = status;
      if (typeof rest[0] === 'string') response.statusMessage = rest[0];
      for (const [name, value] of headerPairs(rest.at(-1))) response.setHeader(name, value);
      return response;
    },
    write(chunk: unknown, encoding?: unknown, written?: unknown) {
      begin();
      take(chunk, encoding);
      const callback = [encoding, written].find((value) => typeof value === 'function');
      if (callback) queueMicrotask(callback as () => void);
      return true;
    },
    end(...args: unknown[]) {
      const [chunk, encoding] = args;
      const callback = args.find((value) => typeof value === 'function');
      if (callback) response.once('finish', callback as () => void);
      begin();
      const hasChunk = chunk !== undefined && chunk !== null && typeof chunk !== 'function';
      const last = hasChunk ? take(chunk, encoding) : Buffer.alloc(0);
      // An answer that broke off gives way to that of the error handler, which alone is as long as its headers say.
      const isWhole = chunks.length > 1 && last.length > 0 && Number(response.getHeader('content-length')) === last.length;
      const { statusCode: status, statusMessage } = response;
      answer({ status, statusMessage, headers: response.getHeaders(), body: isWhole ? last : Buffer.concat(chunks) });
      return response;
    },
    flushHeaders: begin,
    destroy(error?: Error) {
      fail(error ?? new Error('the handler destroyed its response'));
      return destroy.call(response, error);
    },
    emit(event: string, ...args: unknown[]) {
      if (event !== 'close') return emit.call(response, event, ...args);
      isGone = true;
      return true;
    },
  };
  Object.assign(response, held);

  return {
    answered,
    letGo(headers = before) {
      Object.assign(response, { write, end, writeHead, flushHeaders, destroy, emit });
      for (const name of response.getHeaderNames()) response.removeHeader(name);
      for (const [name, value] of Object.entries(headers)) if (value !== undefined) response.setHeader(name, value);
      response.statusMessage = '';
      if (isGone) response.emit('close');
    },
  };
}

const encodingOf = (encoding: unknown): BufferEncoding => (typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8');

type HeaderPair = readonly [string, number | string | readonly string[]];

/** `writeHead` takes an object, or names and values in turn. */
function headerPairs(headers: unknown): HeaderPair[] {
  if (typeof headers !== 'object' || headers === null) return [];
  if (!Array.isArray(headers)) return Object.entries(headers);
  if (Array.isArray(headers[0])) return headers;
  return headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1]] as const] : []));
}
