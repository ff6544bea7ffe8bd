/** Work in order of its index, one at a time; what comes again later waits for what is there. */
export type Queue = <T>(index: number, work: () => Promise<T>) => Promise<T>;

export function createQueue(): Queue {
  const ends = new Map<number, PromiseWithResolvers<void>>();
  const endOf = (index: number) => {
    const end = ends.get(index) ?? Promise.withResolvers<void>();
    ends.set(index, end);
    return end;
  };
  let last: Promise<unknown> = Promise.resolve();
  return async (index, work) => {
    if (index > 0) await endOf(index - 1).promise;
    const before = last;
    const done = before.then(work);
    last = done.catch(() => {});
    try {
      return await done;
    } finally {
      endOf(index).resolve();
    }
  };
}
