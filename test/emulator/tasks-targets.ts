import { afterAll } from 'vitest';
import { createFaults } from '../../src/emulator/faults.ts';
import { noJournal } from '../../src/emulator/journal.ts';
import { listen } from '../../src/emulator/listen.ts';
import { createTasksEmulator } from '../../src/emulator/tasks/service.ts';
import { manualTime } from '../../src/emulator/time.ts';

/** Cloud Tasks alone, on manual time and without an app, until the tests of the file are over. */
export async function embeddedTasks() {
  const time = manualTime();
  const emulator = createTasksEmulator({ time, faults: createFaults(), journal: noJournal, appEngineUrl: undefined });
  const server = await listen(emulator.register, 0);
  afterAll(async () => {
    emulator.close();
    time.close();
    await server.close();
  });
  return { emulator, time, address: server.address };
}
