import { strict as assert } from 'node:assert';
import { after, afterEach, before, test } from 'node:test';
import { Firestore } from '@google-cloud/firestore';
import { useEmulator } from 'pubsub-toolkit/testing';

/** Against the emulator: here the commit is applied and its answer lost, and the client's second try meets its own document. */
const emulator = useEmulator({ beforeAll: before, afterEach, afterAll: after });

test('a claim survives a lost answer', async () => {
  emulator().faults.add({ kind: 'answer-lost', rpc: 'Firestore.Commit', times: 1 });
  const db = new Firestore({ projectId: 'shop' });
  const claim = db.doc('claims/order-17');
  const runId = 'run-1';
  await claim.create({ runId }).catch(async (error) => {
    // ALREADY_EXISTS may be our own write: only the run id tells.
    if (error.code !== 6 || (await claim.get()).get('runId') !== runId) throw error;
  });
  assert.equal((await claim.get()).get('runId'), runId);
  await db.terminate();
});
