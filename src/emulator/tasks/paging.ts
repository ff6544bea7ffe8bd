import { invalidArgument } from '../grpc.ts';
import { quoted } from './names.ts';

export type PageRequest = { readonly pageSize: number; readonly pageToken: string };

/** One page in order of name; the token is the last name of the page before, so that what comes and goes in between does no harm. */
export function pageOf<Item extends { readonly name: string }>(
  items: Iterable<Item>,
  { pageSize, pageToken }: PageRequest,
  maxSize: number,
): { page: Item[]; nextPageToken: string } {
  if (pageSize < 0) throw invalidArgument(`page_size must not be negative: ${pageSize}`);
  const after = Buffer.from(pageToken, 'base64url').toString();
  if (Buffer.from(after).toString('base64url') !== pageToken)
    throw invalidArgument(`page_token ${quoted(pageToken)} is not one of this service`);
  const rest = [...items].filter(({ name }) => name > after).sort((a, b) => (a.name < b.name ? -1 : 1));
  const page = rest.slice(0, Math.min(pageSize || maxSize, maxSize));
  const last = page.at(-1);
  return { page, nextPageToken: last && page.length < rest.length ? Buffer.from(last.name).toString('base64url') : '' };
}
