import { invalidArgument } from '../grpc.ts';

/** The segments of a field path: `` a.`b.c` `` is `['a', 'b.c']`. */
export type FieldPath = readonly string[];

/** What a path calls the document itself. */
export const nameField = '__name__';

const databasePattern = /^projects\/[^/]+\/databases\/[^/]+$/;
const parentPattern = /^(projects\/[^/]+\/databases\/[^/]+)\/documents(?:\/|$)/;
const reservedPattern = /^__.*__$/s;
const nameLimitBytes = 1_500;

export function checkDatabase(name: string): string {
  if (!databasePattern.test(name)) throw invalidArgument(`"${name}" is not a database: projects/{project}/databases/{database}`);
  return name;
}

/** The database of a document or of the parent of a collection. */
export function databaseOf(resource: string): string {
  const database = parentPattern.exec(resource)?.[1];
  if (!database) throw invalidArgument(`"${resource}" is not below projects/{project}/databases/{database}/documents`);
  return database;
}

export function rootOf(database: string): string {
  return `${database}/documents`;
}

/** Refuses a name that is not one of a document in this database. */
export function checkDocument(database: string, name: string): void {
  const root = `${rootOf(database)}/`;
  if (!name.startsWith(root)) throw invalidArgument(`document name "${name}" is not below "${root}"`);
  const segments = name.slice(root.length).split('/');
  if (segments.length % 2 === 1) throw invalidArgument(`document name "${name}" lacks a document id`);
  for (const segment of segments) checkId(segment, name);
}

/** Refuses what is neither the root of this database nor one of its documents. */
export function checkParent(database: string, parent: string): void {
  if (parent !== rootOf(database)) checkDocument(database, parent);
}

export function checkId(id: string, within: string): void {
  if (id === '' || id === '.' || id === '..' || id.includes('/') || reservedPattern.test(id)) {
    throw invalidArgument(`"${id}" is not a valid id in "${within}"`);
  }
  checkBytes('an id', id);
}

/** Ids and the names of fields have the same limit. */
export function checkBytes(what: string, text: string): void {
  if (text.length <= nameLimitBytes / 3) return;
  const bytes = Buffer.byteLength(text);
  if (bytes > nameLimitBytes)
    throw invalidArgument(`${what} takes ${bytes} bytes, above the ${nameLimitBytes} allowed: "${text.slice(0, 100)}…"`);
}

/** The name without its last segment: the collection of a document, the parent of a collection. */
export function parentOf(name: string): string {
  return name.slice(0, name.lastIndexOf('/'));
}

export function idOf(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

const segmentPattern = /(?:`((?:[^`\\]|\\.)+)`|([A-Za-z_][A-Za-z_0-9]*))(\.|$)/sy;

export function parseFieldPath(text: string): FieldPath {
  const segments: string[] = [];
  segmentPattern.lastIndex = 0;
  for (let more = true; more; ) {
    const match = segmentPattern.exec(text);
    if (!match) throw invalidArgument(`"${text}" is not a field path`);
    const [, quoted, simple, end] = match;
    segments.push(quoted === undefined ? (simple ?? '') : quoted.replace(/\\(.)/gs, '$1'));
    more = end === '.';
  }
  return segments;
}

/** A path of a field that can be written or projected, so not the document's name. */
export function parseStoredPath(text: string): FieldPath {
  const path = parseFieldPath(text);
  for (const segment of path) {
    if (reservedPattern.test(segment)) throw invalidArgument(`field name "${segment}" is reserved`);
    checkBytes('a field name', segment);
  }
  return path;
}
