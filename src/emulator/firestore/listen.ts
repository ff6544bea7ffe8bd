import type { ServerDuplexStream } from '@grpc/grpc-js';
import { afterCall, beforeCall, type CallParts, invalidArgument, RpcError, status, wireError } from '../grpc.ts';
import type { Database } from './database.ts';
import type { Databases } from './databases.ts';
import type { Change } from './documents.ts';
import type { Planner } from './indexes.ts';
import { timestampOf } from './instants.ts';
import { changeAnswers, type ListenAnswer, refusal, snapshotAnswer, targetAnswer, targetAnswerAt } from './listen-answers.ts';
import { checkDatabase, checkDocument, checkParent, type FieldPath } from './paths.ts';
import type { StructuredQuery } from './query.ts';
import { documentsView, queryView, type View } from './view.ts';

type AddTarget = {
  readonly targetId: number;
  readonly targetType?: 'query' | 'documents';
  readonly query: { readonly parent: string; readonly structuredQuery: StructuredQuery | null } | null;
  readonly documents: { readonly documents: readonly string[] } | null;
  /** Set where the client goes on from what it has. */
  readonly resumeType?: 'resumeToken' | 'readTime';
  readonly once: boolean;
};

type ListenRequest = {
  readonly database: string;
  readonly targetChange?: 'addTarget' | 'removeTarget';
  readonly addTarget: AddTarget | null;
  readonly removeTarget: number;
};

type Target = { readonly about: string; readonly view: View; readonly select: readonly FieldPath[] | undefined };
type ListenCall = ServerDuplexStream<ListenRequest, ListenAnswer>;

export type Listens = {
  open(call: ListenCall): void;
  /** What is listened to: the documents or the collection of each target. */
  targets(): string[];
  /** Ends every stream with UNAVAILABLE. */
  end(): void;
};

export type ListenParts = { readonly databases: Databases; readonly calls: CallParts; readonly planned: Planner };

const rpc = 'Firestore.Listen';

export function createListens(parts: ListenParts): Listens {
  const streams = new Set<ListenStream>();
  return {
    open(call) {
      const stream = openStream(call, parts, () => streams.delete(stream));
      streams.add(stream);
    },
    targets: () => [...streams].flatMap((stream) => stream.targets()),
    end() {
      for (const { fail } of [...streams]) fail(new RpcError(status.UNAVAILABLE, 'the stream was closed'));
    },
  };
}

type ListenStream = { targets(): string[]; fail(error: unknown): void };

/**
 * The first snapshot of each target, then what each commit changes of it, all targets at once.
 *
 * No version of the past is kept for a client that comes back: it is told to reset, gets everything again, and finds out by itself what
 * has changed meanwhile.
 */
function openStream(call: ListenCall, { databases, calls, planned }: ListenParts, whenEnded: () => void): ListenStream {
  const targets = new Map<number, Target>();
  let site = { rpc, resource: '' };
  let database: Database | undefined;
  let unwatch = () => {};
  let isOpen = true;
  let requests = Promise.resolve();
  let answers = Promise.resolve();

  const end = () => {
    isOpen = false;
    unwatch();
    targets.clear();
    whenEnded();
  };
  const fail = (error: unknown) => {
    if (!isOpen) return;
    end();
    call.emit('error', wireError(rpc, error));
  };
  const deliver = async (batch: readonly ListenAnswer[]) => {
    await afterCall(site, calls);
    for (const answer of batch) {
      if (!isOpen) return;
      if (calls.faults.roll('close-stream', site)) throw new RpcError(status.UNAVAILABLE, `fault: ${rpc} was closed`);
      call.write(answer);
    }
  };
  const send = (batch: readonly ListenAnswer[]) => {
    answers = answers.then(() => deliver(batch)).catch(fail);
  };

  const onCommit = ({ documents }: Database, changes: readonly Change[], commitAtMicros: number) => {
    const readTime = timestampOf(commitAtMicros);
    const exists = (name: string) => documents.get(name) !== undefined;
    const changed = [...targets].flatMap(([targetId, { view, select }]) =>
      changeAnswers(view.after(changes), { targetId, select, exists, readTime }),
    );
    if (changed.length > 0) send([...changed, snapshotAnswer(readTime)]);
  };
  const opened = async (name: string): Promise<Database> => {
    if (database) {
      if (name !== site.resource) throw invalidArgument(`database is "${name}"; this stream listens to "${site.resource}"`);
      return database;
    }
    site = { rpc, resource: checkDatabase(name) };
    await beforeCall(site, calls);
    const found = databases.named(name);
    database = found;
    if (isOpen) unwatch = found.watch((changes, commitAtMicros) => onCommit(found, changes, commitAtMicros));
    return found;
  };
  const add = (within: Database, asked: AddTarget) => {
    const targetId = asked.targetId || unusedId(targets);
    try {
      if (targetId < 0) throw invalidArgument(`target_id is ${targetId}; it must not be negative`);
      if (targets.has(targetId)) throw invalidArgument(`target_id ${targetId} is in use on this stream`);
      const target = targetOf(asked, site.resource, within, planned);
      const { readTime } = within.read({});
      const shown = { targetId, select: target.select, exists: () => false, readTime };
      send([
        targetAnswer('ADD', targetId),
        ...(asked.resumeType ? [targetAnswerAt('RESET', targetId, readTime)] : []),
        ...changeAnswers(target.view.first(), shown),
        targetAnswerAt('CURRENT', targetId, readTime),
        snapshotAnswer(readTime),
        ...(asked.once ? [targetAnswer('REMOVE', targetId)] : []),
      ]);
      if (!asked.once) targets.set(targetId, target);
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      // To the client its id stands for nothing from now on, also where another target had it.
      targets.delete(targetId);
      send([refusal(targetId, error)]);
    }
  };
  const remove = (targetId: number) => {
    if (targets.delete(targetId)) send([targetAnswer('REMOVE', targetId)]);
    else send([refusal(targetId, invalidArgument(`remove_target is ${targetId}; this stream has no such target`))]);
  };
  const take = async ({ database: name, targetChange, addTarget, removeTarget }: ListenRequest) => {
    if (!isOpen) return;
    const within = await opened(name);
    if (!isOpen) return;
    if (targetChange === 'addTarget' && addTarget) add(within, addTarget);
    else if (targetChange === 'removeTarget') remove(removeTarget);
    else throw invalidArgument('a listen request needs add_target or remove_target');
  };
  const finish = async () => {
    await answers;
    if (!isOpen) return;
    end();
    call.end();
  };

  call.on('data', (request: ListenRequest) => {
    requests = requests.then(() => take(request)).catch(fail);
  });
  call.on('end', () => {
    requests = requests.then(finish);
  });
  call.on('cancelled', () => isOpen && end());
  return { targets: () => [...targets.values()].map(({ about }) => about), fail };
}

/** The client leaves the choice to us by 0. */
function unusedId(targets: ReadonlyMap<number, Target>): number {
  let id = 1;
  while (targets.has(id)) id += 1;
  return id;
}

function targetOf(
  { targetType, query, documents }: AddTarget,
  database: string,
  { documents: stored }: Database,
  planned: Planner,
): Target {
  if (targetType === 'documents' && documents) {
    for (const name of documents.documents) checkDocument(database, name);
    return { about: documents.documents.join(', '), view: documentsView(documents.documents, stored), select: undefined };
  }
  if (targetType !== 'query' || !query?.structuredQuery) throw invalidArgument('a target needs documents or a structured query');
  checkParent(database, query.parent);
  const plan = planned(query.parent, query.structuredQuery);
  const about = `${query.parent}/${plan.scope.allDescendants ? '**/' : ''}${plan.scope.collectionId}`;
  return { about, view: queryView(plan, stored), select: plan.select };
}
