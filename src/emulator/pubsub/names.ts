import { invalidArgument } from '../grpc.ts';

const id = /^(?!goog)[A-Za-z][\w.~+%-]{2,254}$/;

/** `projects/P/topics/T` and the like. */
export function checkName(kind: 'topics' | 'subscriptions' | 'snapshots', name: string): string {
  const [projects, project, kindGiven, resource, ...rest] = name.split('/');
  if (projects !== 'projects' || !project || kindGiven !== kind || rest.length > 0 || !id.test(resource ?? '')) {
    throw invalidArgument(
      `"${name}" is no name of the form projects/PROJECT/${kind}/ID, with an ID of 3 to 255 of A-Z, a-z, 0-9 and -_.~+%, first a letter and not "goog"`,
    );
  }
  return name;
}

export function checkProject(project: string): string {
  if (!/^projects\/[^/]+$/.test(project)) throw invalidArgument(`"${project}" is no name of the form projects/PROJECT`);
  return project;
}

export const projectOf = (name: string): string => name.split('/').slice(0, 2).join('/');

export type Paging = { readonly pageSize: number; readonly pageToken: string };
export type Mask = { readonly updateMask: { readonly paths: readonly string[] } | null };

const mostPerPage = 1_000;

/** A page token is the offset of the next page; what it lists is in the order of its making. */
export function page<T>(all: readonly T[], { pageSize, pageToken }: Paging): { items: T[]; nextPageToken: string } {
  const from = pageToken === '' ? 0 : Number(pageToken);
  if (pageSize < 0) throw invalidArgument(`page_size is ${pageSize}; it must not be negative`);
  if (!Number.isSafeInteger(from) || from < 0) throw invalidArgument(`page_token "${pageToken}" is none of this service`);
  const end = from + (pageSize === 0 ? mostPerPage : Math.min(pageSize, mostPerPage));
  return { items: all.slice(from, end), nextPageToken: end < all.length ? String(end) : '' };
}

/** What a subscription or snapshot has for its topic once that is gone. */
export const deletedTopic = '_deleted-topic_';
