import { invalidArgument } from '../grpc.ts';

/** Whether a subscription takes a message with these attributes. */
export type Filter = (attributes: Readonly<Record<string, string>>) => boolean;

const longestBytes = 256;

/**
 * Reads a subscription filter (`docs/facts.md` A.8); the empty one takes everything.
 *
 * @throws INVALID_ARGUMENT with what was expected where
 */
export function parseFilter(text: string): Filter {
  if (text === '') return () => true;
  const bytes = Buffer.byteLength(text);
  if (bytes > longestBytes) throw invalidArgument(`the filter takes ${bytes} bytes; at most ${longestBytes} are allowed`);
  const tokens = tokensOf(text);
  const filter = expression(tokens);
  if (tokens.next().kind !== 'end') throw tokens.unexpected('AND, OR or the end');
  return filter;
}

type Token = { readonly kind: 'word' | 'text' | 'sign' | 'end'; readonly value: string; readonly at: number };
type Tokens = {
  next(): Token;
  /** Takes the next one if it is this word or sign. */
  takes(value: string): boolean;
  /** Takes the next one, which must be this word or sign. */
  expect(value: string): void;
  unexpected(wanted: string): Error;
};

function tokensOf(text: string): Tokens {
  const pattern = /\s*(?:(?<text>"(?:[^"\\]|\\.)*")|(?<word>\w[\w-]*)|(?<sign>!=|[:=.,()-])|(?<end>$))/y;
  const all: Token[] = [];
  do {
    const at = pattern.lastIndex;
    const [kind, value] = Object.entries(pattern.exec(text)?.groups ?? {}).find(([, found]) => found !== undefined) ?? [];
    if (kind === undefined || value === undefined) throw invalidArgument(`the filter cannot be read from its character ${at + 1} on`);
    all.push({ kind: kind as Token['kind'], value: kind === 'text' ? unquoted(value) : value, at });
  } while (all.at(-1)?.kind !== 'end');
  let position = 0;
  let last: Token = { kind: 'end', value: '', at: 0 };
  const next = () => {
    last = all[position++] ?? last;
    return last;
  };
  const takes = (value: string) => {
    const token = all[position];
    const fits = token?.value === value && (token.kind === 'word' || token.kind === 'sign');
    if (fits) next();
    return fits;
  };
  const unexpected = (wanted: string) => invalidArgument(`the filter has no ${wanted} at its character ${last.at + 1}`);
  return {
    next,
    takes,
    expect(value) {
      if (takes(value)) return;
      next();
      throw unexpected(`"${value}"`);
    },
    unexpected,
  };
}

const escapes: Readonly<Record<string, string>> = { '\\': '\\', '"': '"', "'": "'", n: '\n', r: '\r', t: '\t' };

function unquoted(literal: string): string {
  return literal
    .slice(1, -1)
    .replace(
      /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|([0-3][0-7]{2})|(.))/gs,
      (whole, hex?: string, unicode?: string, octal?: string, sign = '') => {
        const code = hex ?? unicode;
        if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
        if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
        const plain = escapes[sign];
        if (plain === undefined) throw invalidArgument(`the filter holds the unknown escape ${whole}`);
        return plain;
      },
    );
}

/** Terms joined by AND alone or by OR alone; both together need parentheses. */
function expression(tokens: Tokens): Filter {
  const first = term(tokens);
  const joint = ['AND', 'OR'].find((word) => tokens.takes(word));
  if (joint === undefined) return first;
  const terms = [first];
  do terms.push(term(tokens));
  while (tokens.takes(joint));
  if (joint === 'AND') return (attributes) => terms.every((one) => one(attributes));
  return (attributes) => terms.some((one) => one(attributes));
}

function term(tokens: Tokens): Filter {
  if (tokens.takes('NOT') || tokens.takes('-')) {
    const negated = term(tokens);
    return (attributes) => !negated(attributes);
  }
  if (tokens.takes('(')) {
    const inner = expression(tokens);
    tokens.expect(')');
    return inner;
  }
  if (tokens.takes('hasPrefix')) return prefix(tokens);
  tokens.expect('attributes');
  if (tokens.takes(':')) {
    const name = attributeName(tokens);
    return (attributes) => Object.hasOwn(attributes, name);
  }
  tokens.expect('.');
  const name = attributeName(tokens);
  const negated = tokens.takes('!=');
  if (!negated) tokens.expect('=');
  const value = textValue(tokens);
  // An absent attribute is unequal to every value.
  return (attributes) => (Object.hasOwn(attributes, name) && attributes[name] === value) !== negated;
}

function prefix(tokens: Tokens): Filter {
  for (const part of ['(', 'attributes', '.']) tokens.expect(part);
  const name = attributeName(tokens);
  tokens.expect(',');
  const start = textValue(tokens);
  tokens.expect(')');
  return (attributes) => Object.hasOwn(attributes, name) && attributes[name]?.startsWith(start) === true;
}

function attributeName(tokens: Tokens): string {
  const { kind, value } = tokens.next();
  if (kind !== 'word' && kind !== 'text') throw tokens.unexpected('attribute name');
  return value;
}

function textValue(tokens: Tokens): string {
  const { kind, value } = tokens.next();
  if (kind !== 'text') throw tokens.unexpected('text in double quotes');
  return value;
}
