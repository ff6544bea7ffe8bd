import { parseArgs } from 'node:util';
import { createFaults } from '../../../src/emulator/faults.ts';
import { createFirestoreEmulator } from '../../../src/emulator/firestore/service.ts';
import { type Journal, sqliteJournal } from '../../../src/emulator/journal.ts';
import { listen } from '../../../src/emulator/listen.ts';
import { createPubsubEmulator } from '../../../src/emulator/pubsub/service.ts';
import { createTasksEmulator } from '../../../src/emulator/tasks/service.ts';
import { realTime } from '../../../src/emulator/time.ts';

/** The emulator with a data folder and one protection less: the control of its crash test. */
const { values } = parseArgs({ options: { 'data-dir': { type: 'string', default: '' }, without: { type: 'string', default: '' } } });
const lateMs = 50;

const weakened: Readonly<Record<string, (journal: Journal) => Journal>> = {
  'writing before the answer'(journal) {
    const late =
      <Args extends unknown[]>(note: (...args: Args) => void) =>
      (...args: Args) => {
        setTimeout(() => note(...args), lateMs);
      };
    return { ...journal, put: late(journal.put), delete: late(journal.delete), saved: () => undefined };
  },
  'writing deletions': (journal) => ({ ...journal, delete: () => {} }),
};

const weaken = weakened[values.without];
if (!weaken) throw new Error(`there is no protection "${values.without}"`);
const parts = { time: realTime(), faults: createFaults(), journal: weaken(sqliteJournal(values['data-dir'])) };
const pubsub = await listen(createPubsubEmulator(parts).register, 0);
const firestore = await listen(createFirestoreEmulator(parts).register, 0);
const tasks = await listen(createTasksEmulator({ ...parts, appEngineUrl: undefined }).register, 0);
console.log(JSON.stringify({ pubsub: pubsub.address, firestore: firestore.address, tasks: tasks.address }));
