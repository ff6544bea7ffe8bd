import { randomBytes } from 'node:crypto';
import { type CallParts, invalidArgument, RpcError, unary } from '../grpc.ts';
import { type Mask, masked } from './answers.ts';
import type { Database, TransactionOptions } from './database.ts';
import type { Databases } from './databases.ts';
import { checkDocument, checkId, databaseOf } from './paths.ts';
import type { Fields } from './values.ts';
import { type Precondition, targetOf, type Write, type WriteResult } from './writes.ts';

type Sent = { readonly name: string; readonly fields: Fields };
type CreateRequest = {
  readonly parent: string;
  readonly collectionId: string;
  readonly documentId: string;
  readonly document: Sent | null;
  readonly mask: Mask | null;
};
type UpdateRequest = {
  readonly document: Sent | null;
  readonly updateMask: Mask | null;
  readonly mask: Mask | null;
  readonly currentDocument: Precondition | null;
};

export function writeMethods(databases: Databases, parts: CallParts) {
  /** One write, and the document as it is then. */
  const writeOne = async (write: { name: string; fields: Fields } & Pick<Write, 'updateMask' | 'currentDocument'>, mask: Mask | null) => {
    const { name, fields, updateMask, currentDocument } = write;
    const database = databaseOf(name);
    checkDocument(database, name);
    const answer = masked(mask);
    const { commit, documents } = databases.named(database);
    await commit([{ operation: 'update', update: { name, fields }, updateMask, updateTransforms: [], currentDocument }], noTransaction);
    const document = documents.get(name);
    return document ? answer(document) : {};
  };

  return {
    Commit: unary('Firestore.Commit', parts, (request: { database: string; writes: Write[]; transaction: Buffer }) =>
      databases.named(request.database).commit(request.writes, request.transaction),
    ),

    BatchWrite: unary('Firestore.BatchWrite', parts, async (request: { database: string; writes: Write[] }) => {
      const database = databases.named(request.database);
      const names = request.writes.map(targetOf);
      const again = new Set(names).size < names.length && names.find((name, index) => names.indexOf(name) < index);
      if (again) throw invalidArgument(`a document may be written only once in a BatchWrite: ${again}`);
      const answers = await Promise.all(request.writes.map((write) => writeAlone(database, write)));
      return { writeResults: answers.map(({ result }) => result), status: answers.map(({ code, message }) => ({ code, message })) };
    }),

    CreateDocument: unary('Firestore.CreateDocument', parts, ({ parent, collectionId, documentId, document, mask }: CreateRequest) => {
      databases.above(parent);
      checkId(collectionId, parent);
      if (document?.name) throw invalidArgument(`document.name is "${document.name}"; a new document is named by its document_id`);
      const name = `${parent}/${collectionId}/${documentId || randomBytes(15).toString('base64url')}`;
      const currentDocument = { conditionType: 'exists', exists: false } as const;
      return writeOne({ name, fields: document?.fields ?? {}, updateMask: null, currentDocument }, mask);
    }),

    UpdateDocument: unary('Firestore.UpdateDocument', parts, ({ document, updateMask, mask, currentDocument }: UpdateRequest) => {
      if (!document) throw invalidArgument('document is missing');
      return writeOne({ ...document, updateMask, currentDocument }, mask);
    }),

    DeleteDocument: unary(
      'Firestore.DeleteDocument',
      parts,
      async ({ name, currentDocument }: { name: string; currentDocument: Precondition | null }) => {
        const write: Write = { operation: 'delete', delete: name, updateMask: null, updateTransforms: [], currentDocument };
        await databases.named(databaseOf(name)).commit([write], noTransaction);
        return {};
      },
    ),

    BeginTransaction: unary('Firestore.BeginTransaction', parts, (request: { database: string; options: TransactionOptions | null }) => ({
      transaction: databases.named(request.database).begin(request.options),
    })),

    Rollback: unary('Firestore.Rollback', parts, (request: { database: string; transaction: Buffer }) => {
      if (request.transaction.length === 0) throw invalidArgument('a rollback needs a transaction');
      databases.named(request.database).rollback(request.transaction);
      return {};
    }),
  };
}

const noTransaction = Buffer.alloc(0);

type WrittenAlone = { readonly result: Partial<WriteResult>; readonly code: number; readonly message: string };

async function writeAlone(database: Database, write: Write): Promise<WrittenAlone> {
  try {
    const [result = {}] = (await database.commit([write], noTransaction)).writeResults;
    return { result, code: 0, message: '' };
  } catch (error) {
    if (error instanceof RpcError) return { result: {}, code: error.code, message: error.message };
    throw error;
  }
}
