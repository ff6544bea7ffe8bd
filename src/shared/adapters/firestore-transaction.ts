import type { Transaction } from '@google-cloud/firestore';
import { codeOf, grpcCode } from './firestore-answers.ts';

export type WatchedTransaction = {
  /** For the handler: the client's own, of which reads and writes are seen. */
  readonly transaction: Transaction;
  /** A read was told that another transaction won, whatever the handler made of it. */
  hasLost(): boolean;
};

type Method = (...args: unknown[]) => unknown;

export const reads: readonly PropertyKey[] = ['get', 'getAll', 'execute'];
export const writes: readonly PropertyKey[] = ['create', 'set', 'update', 'delete'];

/**
 * A transaction in which a read after a write is an error that names both documents: the client's own names neither.
 * All else is the client's.
 */
export function watchedTransaction(client: Transaction): WatchedTransaction {
  let written: string | undefined;
  let lost = false;
  const noted = async (read: unknown): Promise<unknown> => {
    try {
      return await read;
    } catch (error) {
      lost ||= codeOf(error) === grpcCode.aborted;
      throw error;
    }
  };
  const watched =
    (name: PropertyKey, method: Method): Method =>
    (...args) => {
      const what = nameOf(args[0]);
      if (reads.includes(name)) {
        if (written === undefined) return noted(method.apply(client, args));
        throw new Error(`${what} is read after ${written} was written: in a transaction all reads come before all writes`);
      }
      const result = method.apply(client, args);
      if (writes.includes(name)) written ??= what;
      return result === client ? transaction : result;
    };
  const transaction = new Proxy(client, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? watched(name, member as Method) : member;
    },
  });
  return { transaction, hasLost: () => lost };
}

/** By shape; a query has no path of its own. */
function nameOf(target: unknown): string {
  const path = (target as { path?: unknown } | null | undefined)?.path;
  return typeof path === 'string' ? path : 'a query';
}
