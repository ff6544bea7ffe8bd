import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Addresses } from '../../bench/emulator/servers.ts';
import { printTable } from '../../bench/measure/figures.ts';
import { run } from '../../src/cli/demo/processes.ts';
import { seededRandom } from '../../src/emulator/server.ts';
import { documentsPart } from './emulator/documents.ts';
import { messagesPart } from './emulator/messages.ts';
import type { Finding, Part } from './emulator/part.ts';
import { tasksPart } from './emulator/tasks.ts';
import type { CrashTest } from './figures.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const anyPorts = ['--pubsub-port', '0', '--firestore-port', '0', '--tasks-port', '0', '--json'];
const command = { script: here('../../src/cli/main.ts'), args: ['emulator', ...anyPorts] };
const controls = ['writing before the answer', 'writing deletions'];
const controlKills = 3;
const shortestLoadMs = 300;
const longestLoadMs = 1_200;

type Program = { readonly script: string; readonly args: readonly string[] };
type Totals = { confirmed: number; lost: number; repeated: number };

/** Our emulator with a data folder under load, killed as by `kill -9` at moments of the seed, and started again on the same folder. */
export const crashTest: CrashTest = async (args) => {
  const { values } = parseArgs({ args: [...args], options: { seed: { type: 'string' }, kills: { type: 'string', default: '20' } } });
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 32));
  const kills = Number(values.kills);
  console.log(`seed ${seed}`);
  const totals = await killed(command, kills, seededRandom(seed), console.log);
  const rows = [...totals].map(([promise, { confirmed, lost, repeated }]) => [promise, `${confirmed}`, `${lost}`, `${repeated}`]);
  printTable([[`after ${kills} kills`, 'confirmed', 'lost', 'came again'], ...rows]);
  for (const [promise, { confirmed }] of totals) if (confirmed === 0) throw new Error(`nothing was confirmed that "${promise}" is about`);
  const caught: string[] = [];
  for (const without of controls) {
    const control = { script: here('./emulator/unsafe-emulator.ts'), args: ['--without', without] };
    const { lost, repeated } = sum(await killed(control, controlKills, seededRandom(seed), () => {}));
    if (lost + repeated > 0) caught.push(without);
    console.log(`control without ${without}: ${lost} lost, ${repeated} came again${lost + repeated > 0 ? '' : ', NOT CAUGHT'}`);
  }
  const { lost, repeated } = sum(totals);
  return {
    figures: { cells: totals.size * kills, kills, lost, undocumentedRepeats: repeated, controlsCaught: caught.length },
    controls: controls.length,
  };
};

/** Each promise with its sum over all kills. */
async function killed(program: Program, kills: number, random: () => number, say: (line: string) => void): Promise<Map<string, Totals>> {
  const folder = mkdtempSync(join(tmpdir(), 'crash-emulator-'));
  const parts: Part[] = [messagesPart(random), documentsPart(random), await tasksPart(random)];
  let addresses: Addresses = { pubsub: '', firestore: '', tasks: '' };
  const emulator = await run({
    name: 'the emulator',
    script: program.script,
    args: [...program.args, '--data-dir', folder],
    env: {},
    untilReady: async (firstLine) => {
      addresses = JSON.parse(await firstLine);
    },
  });
  const totals = new Map<string, Totals>();
  try {
    for (const part of parts) await part.prepare(addresses);
    for (let kill = 1; kill <= kills; kill++) {
      const loadMs = Math.round(shortestLoadMs + random() * (longestLoadMs - shortestLoadMs));
      let isKilled = false;
      const loads = Promise.all(parts.map((part) => part.load(addresses, () => isKilled)));
      await Promise.race([pause(loadMs), loads]);
      isKilled = true;
      await emulator.kill();
      await loads;
      await emulator.restart();
      const findings = (await Promise.all(parts.map((part) => part.check(addresses)))).flat();
      for (const finding of findings) add(totals, finding, say);
      say(`kill ${kill} after ${loadMs} ms: ${findings.map(({ confirmed }) => confirmed).join(' ')} confirmed`);
    }
  } finally {
    for (const part of parts) part.close();
    await emulator.kill();
    rmSync(folder, { recursive: true });
  }
  return totals;
}

function add(totals: Map<string, Totals>, { promise, confirmed, lost, repeated }: Finding, say: (line: string) => void): void {
  const before = totals.get(promise) ?? { confirmed: 0, lost: 0, repeated: 0 };
  totals.set(promise, {
    confirmed: before.confirmed + confirmed,
    lost: before.lost + lost.length,
    repeated: before.repeated + repeated.length,
  });
  for (const what of [...lost.slice(0, 3), ...repeated.slice(0, 3)]) say(`  broken: ${promise}: ${what}`);
}

function sum(totals: ReadonlyMap<string, Totals>): Totals {
  const all = { confirmed: 0, lost: 0, repeated: 0 };
  for (const { confirmed, lost, repeated } of totals.values()) {
    all.confirmed += confirmed;
    all.lost += lost;
    all.repeated += repeated;
  }
  return all;
}
