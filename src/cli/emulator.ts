import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { checkRules, type FaultRule } from '../emulator/faults.ts';
import { checkIndexes } from '../emulator/firestore/index-definitions.ts';
import { type EmulatorOptions, manualTime, startEmulator } from '../emulator/server.ts';
import { returnMemoryWhenIdle } from './idle-memory.ts';

const flags = {
  'pubsub-port': { type: 'string', default: '8085' },
  'firestore-port': { type: 'string', default: '8080' },
  'tasks-port': { type: 'string', default: '8123' },
  'app-engine-url': { type: 'string' },
  'data-dir': { type: 'string' },
  'firestore-indexes': { type: 'string' },
  ordering: { type: 'string', default: 'batch' },
  time: { type: 'string', default: 'real' },
  faults: { type: 'string' },
  seed: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

/** Beside the data: how to reach the emulator that uses it. */
const addressFile = 'env.json';

/** Runs the emulator until SIGTERM, SIGINT or `POST /shutdown`; prints how to reach it once it is ready. */
export async function runEmulator(args: string[]): Promise<void> {
  if (args[0] === 'env') return printEnvironment(args.slice(1));
  const { values } = parseArgs({ args, options: flags });
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 32) : whole('--seed', values.seed, 2 ** 32 - 1);
  const dataDir = values['data-dir'];
  const appEngineUrl = values['app-engine-url'];
  const options: EmulatorOptions = {
    ports: {
      pubsub: whole('--pubsub-port', values['pubsub-port'], 65_535),
      firestore: whole('--firestore-port', values['firestore-port'], 65_535),
      tasks: whole('--tasks-port', values['tasks-port'], 65_535),
    },
    faults: { seed, rules: values.faults === undefined ? [] : readRules(values.faults) },
    pubsub: { ordering: oneOf('--ordering', values.ordering, ['batch', 'strict']) },
    ...(oneOf('--time', values.time, ['real', 'manual']) === 'manual' && { time: manualTime(Date.now()) }),
    ...(values['firestore-indexes'] !== undefined && {
      firestore: { indexes: checkIndexes(readJson('--firestore-indexes', values['firestore-indexes'])) },
    }),
    ...(appEngineUrl !== undefined && { appEngineUrl }),
    ...(dataDir !== undefined && { dataDir }),
  };
  const emulator = await startEmulator(options);
  // What goes wrong in it is told by `closed`.
  const stop = () => void emulator.close().catch(() => {});
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  if (dataDir !== undefined) writeFileSync(join(dataDir, addressFile), JSON.stringify(emulator.env));
  if (values.json) {
    const { pubsub, firestore, tasks, appEngine } = emulator;
    const addresses = { pubsub: pubsub.address, firestore: firestore.address, tasks: tasks.address };
    console.error(`faults: seed ${seed}`);
    console.log(JSON.stringify({ ...addresses, ...(appEngine && { appEngine: appEngine.url }) }));
  } else {
    printExports(emulator.env);
    console.log(`# faults: seed ${seed}; http://${emulator.tasks.address}/faults`);
    if (emulator.appEngine) console.log(`# the App Engine app, as outsiders reach it: ${emulator.appEngine.url}`);
  }
  returnMemoryWhenIdle();
  await emulator.closed;
  process.exit(0);
}

/** The variables of the emulator on the given ports, or of the one that uses the data folder; as `gcloud beta emulators … env-init`. */
function printEnvironment(args: string[]): void {
  const { 'data-dir': dataDir, 'pubsub-port': pubsub, 'firestore-port': firestore, 'tasks-port': tasks } = flags;
  const { values } = parseArgs({
    args,
    options: { 'data-dir': dataDir, 'pubsub-port': pubsub, 'firestore-port': firestore, 'tasks-port': tasks },
  });
  const folder = values['data-dir'];
  if (folder === undefined) {
    printExports({
      PUBSUB_EMULATOR_HOST: `127.0.0.1:${whole('--pubsub-port', values['pubsub-port'], 65_535)}`,
      FIRESTORE_EMULATOR_HOST: `127.0.0.1:${whole('--firestore-port', values['firestore-port'], 65_535)}`,
      CLOUD_TASKS_EMULATOR_HOST: `127.0.0.1:${whole('--tasks-port', values['tasks-port'], 65_535)}`,
      METADATA_SERVER_DETECTION: 'none',
    });
    return;
  }
  const file = join(folder, addressFile);
  if (!existsSync(file)) throw new Error(`no emulator has used the data folder ${folder}`);
  printExports(readJson('--data-dir', file) as Record<string, string>);
}

function printExports(env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env)) console.log(`export ${name}=${value}`);
}

function readRules(file: string): readonly FaultRule[] {
  return checkRules(readJson('--faults', file));
}

function readJson(flag: string, file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`${flag}: ${file} cannot be read as JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function whole(flag: string, text: string, most: number): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || number > most) throw new Error(`${flag} is "${text}"; it must be a whole number from 0 to ${most}`);
  return number;
}

function oneOf<const Choice extends string>(flag: string, text: string, choices: readonly Choice[]): Choice {
  const found = choices.find((choice) => choice === text);
  if (found === undefined) throw new Error(`${flag} is "${text}"; it must be ${choices.join(' or ')}`);
  return found;
}
