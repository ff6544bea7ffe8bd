import { encoderOf, fieldBytes, type RawClient, rawClient } from '../../../bench/emulator/raw-client.ts';
import { inLanes, type Part, textOf, untilKilled } from './part.ts';

const database = 'projects/crash/databases/(default)';
const service = '/google.firestore.v1.Firestore';
const lanes = 6;
const pairsOfLane = 10;
const deletedShare = 0.25;
const sides = ['left', 'right'] as const;

/** What a pair holds, undefined while it is absent. */
type Content = string | undefined;

/** Every commit writes or deletes two documents together; a lane has its pairs for itself. */
export function documentsPart(random: () => number): Part {
  const encode = encoderOf('@google-cloud/firestore', 'v1.json');
  const held = new Map<string, Content>();
  /** Commits without an answer: the pair holds this, or what it held before. */
  const uncertain = new Map<string, Content>();
  let serial = 0;
  const nameOf = (side: string, pair: string) => `${database}/documents/${side}/${pair}`;
  const pairs = Array.from({ length: lanes * pairsOfLane }, (_, index) => `pair-${index}`);

  const change = async (client: RawClient, pair: string) => {
    const before = held.get(pair);
    const after = before !== undefined && random() < deletedShare ? undefined : `${++serial}`;
    const currentDocument = { exists: before !== undefined };
    const writes = sides.map((side) => {
      const name = nameOf(side, pair);
      if (after === undefined) return { delete: name, currentDocument };
      return { update: { name, fields: { content: { stringValue: after } } }, currentDocument };
    });
    uncertain.set(pair, after);
    await client.unary(`${service}/Commit`, encode('google.firestore.v1.CommitRequest', { database, writes }));
    uncertain.delete(pair);
    held.set(pair, after);
  };
  const readAll = async (client: RawClient): Promise<Map<string, string>> => {
    const documents = pairs.flatMap((pair) => sides.map((side) => nameOf(side, pair)));
    const request = encode('google.firestore.v1.BatchGetDocumentsRequest', { database, documents });
    const found = (await client.serverStream(`${service}/BatchGetDocuments`, request)).flatMap((answer) => fieldBytes(answer, 1));
    return new Map(found.map((document) => [textOf(fieldBytes(document, 1)[0]), contentOf(document)]));
  };

  return {
    prepare: async () => {},
    async load({ firestore }, isKilled) {
      const client = rawClient(firestore);
      await inLanes(lanes, async (lane) => {
        // A pair without an answer is left alone: nobody can say which precondition would fit.
        const own = () => pairs.slice(lane * pairsOfLane, (lane + 1) * pairsOfLane).filter((pair) => !uncertain.has(pair));
        await untilKilled(isKilled, () => change(client, own()[Math.floor(random() * own().length)] ?? ''));
      });
      client.close();
    },
    async check({ firestore }) {
      const client = rawClient(firestore);
      const present = await readAll(client);
      client.close();
      const kept = { promise: 'a document holds its last commit', confirmed: 0, lost: [] as string[], repeated: [] };
      const gone = { promise: 'a deleted document stays deleted', confirmed: 0, lost: [] as string[], repeated: [] };
      for (const pair of pairs) {
        const [left, right] = sides.map((side) => present.get(nameOf(side, pair)));
        const expected = held.get(pair);
        const finding = expected === undefined ? gone : kept;
        finding.confirmed += 1;
        const holds = left === right && (left === expected || (uncertain.has(pair) && left === uncertain.get(pair)));
        if (!holds) finding.lost.push(`${pair} holds ${left} and ${right} instead of ${expected}`);
        held.set(pair, left);
      }
      uncertain.clear();
      return [kept, gone];
    },
    close() {},
  };
}

/** Document.fields is a map whose one value is a string. */
function contentOf(document: Uint8Array): string {
  const entry = fieldBytes(document, 2)[0] ?? Buffer.alloc(0);
  return textOf(fieldBytes(fieldBytes(entry, 2)[0] ?? Buffer.alloc(0), 17)[0]);
}
