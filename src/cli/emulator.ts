import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { serveAdmin } from '../emulator/admin.ts';
import { startEmulator } from '../emulator/server.ts';

/** Runs the emulator until SIGTERM or SIGINT; prints how to reach it once it is ready. */
export async function runEmulator(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      'pubsub-port': { type: 'string', default: '8085' },
      'firestore-port': { type: 'string', default: '8080' },
      'tasks-port': { type: 'string', default: '8123' },
      'admin-port': { type: 'string' },
      'app-engine-url': { type: 'string' },
      faults: { type: 'string' },
      seed: { type: 'string', default: '1' },
      json: { type: 'boolean', default: false },
    },
  });
  const rules = values.faults ? JSON.parse(readFileSync(values.faults, 'utf8')) : [];
  const emulator = await startEmulator({
    ports: { pubsub: port(values['pubsub-port']), firestore: port(values['firestore-port']), tasks: port(values['tasks-port']) },
    faults: { seed: Number(values.seed), rules },
    ...(values['app-engine-url'] && { appEngineUrl: values['app-engine-url'] }),
  });
  const admin = values['admin-port'] === undefined ? undefined : await serveAdmin(emulator, port(values['admin-port']));
  const addresses = { pubsub: emulator.pubsub.address, firestore: emulator.firestore.address, tasks: emulator.tasks.address };
  if (values.json) {
    console.log(JSON.stringify({ ...addresses, ...(admin && { admin: admin.address }) }));
  } else {
    for (const [name, value] of Object.entries(emulator.env)) console.log(`export ${name}=${value}`);
    if (emulator.appEngine) console.log(`# the App Engine app, as outsiders reach it: ${emulator.appEngine.url}`);
    if (admin) console.log(`# faults and backlog: http://${admin.address}`);
  }
  const stop = () => {
    Promise.all([emulator.close(), admin?.close()]).then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

function port(text: string): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || number > 65_535) throw new Error(`"${text}" is no port; it must be a number from 0 to 65535`);
  return number;
}
