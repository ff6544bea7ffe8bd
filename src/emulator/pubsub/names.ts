import { invalidArgument } from '../grpc.ts';

const id = /^(?!goog)[A-Za-z][\w.~+%-]{2,254}$/;

/** `projects/P/topics/T` and the like. */
export function checkName(kind: 'topics' | 'subscriptions', name: string): string {
  const [projects, project, kindGiven, resource, ...rest] = name.split('/');
  if (projects !== 'projects' || !project || kindGiven !== kind || rest.length > 0 || !id.test(resource ?? '')) {
    throw invalidArgument(
      `"${name}" is no name of the form projects/PROJECT/${kind}/ID, with an ID of 3 to 255 characters that begins with a letter`,
    );
  }
  return name;
}

export function checkProject(project: string): string {
  if (!/^projects\/[^/]+$/.test(project)) throw invalidArgument(`"${project}" is no name of the form projects/PROJECT`);
  return project;
}

export const projectOf = (name: string): string => name.split('/').slice(0, 2).join('/');

const mostPerPage = 1_000;

/** A page token is the offset of the next page; what it lists is in the order of its making. */
export function page<T>(
  all: readonly T[],
  { pageSize, pageToken }: { pageSize: number; pageToken: string },
): { items: T[]; nextPageToken: string } {
  const from = pageToken === '' ? 0 : Number(pageToken);
  if (pageSize < 0 || !Number.isSafeInteger(from) || from < 0) throw invalidArgument('page size or page token is not valid');
  const end = from + (pageSize === 0 ? mostPerPage : Math.min(pageSize, mostPerPage));
  return { items: all.slice(from, end), nextPageToken: end < all.length ? String(end) : '' };
}
