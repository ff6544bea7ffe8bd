import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from '@cdktf/hcl2json';
import { describe, expect, test } from 'vitest';

type Body = Readonly<Record<string, unknown>>;
type Blocks = Readonly<Record<string, readonly Body[]>>;
type Configuration = {
  readonly resource?: Readonly<Record<string, Blocks>>;
  readonly module?: Blocks;
  readonly variable?: Blocks;
  readonly locals?: readonly Body[];
};

/** Every variable that the deployables read. */
const declaredVariables = [
  'GOOGLE_CLOUD_PROJECT',
  'FIRESTORE_DATABASE',
  'COLLECTION_PREFIX',
  'CONSUMER',
  'DEAD_LETTER_TOPIC',
  'SINK',
  'STORE',
  'REDIS_URL',
  'REDIS_CA_FILE',
  'TASK_QUEUES',
  'RELEASE_SERVICE',
  'FINAL_TOPIC',
];

const folder = join(import.meta.dirname, '..', '..', 'terraform');
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.tf'))
  .sort();
const configurations = new Map<string, Configuration>();
for (const file of files) configurations.set(file, await parse(file, readFileSync(join(folder, file), 'utf8')));

const all = [...configurations.values()];
const resources = (type: string) => all.flatMap(({ resource }) => Object.values(resource?.[type] ?? {}).flat());
const root = configurations.get('main.tf') ?? {};
const local = (name: string) => root.locals?.find((block) => name in block)?.[name];

/** Upper-case names that are given a value: `{ NAME = …` in an expression, a key of an object, or the key of a secret variable. */
function namesGiven(value: unknown): string[] {
  if (typeof value === 'string') return [...value.matchAll(/\b([A-Z][A-Z0-9_]+)\s*=[^=]/g)].flatMap(([, name]) => name ?? []);
  if (Array.isArray(value)) return value.flatMap(namesGiven);
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, inner]) => [...(/^[A-Z][A-Z0-9_]+$/.test(key) ? [key] : []), ...namesGiven(inner)]);
}

describe('Terraform', () => {
  test('every file parses, and there are the modules that the root calls', () => {
    const sources = all.flatMap(({ module }) => Object.values(module ?? {}).flatMap(([body]) => String(body?.source)));
    expect(files.length).toBeGreaterThan(20);
    for (const source of sources)
      expect(files.map((file) => file.replace(/\/[^/]+$/, ''))).toContain(`modules/${source.replace(/^.*\//, '')}`);
  });

  test('the subscription of the fifo function, as of every function, has message ordering off', () => {
    const pushed = resources('google_pubsub_subscription').filter((subscription) => 'push_config' in subscription);
    expect(pushed).toHaveLength(1);
    expect(pushed[0]).toMatchObject({ enable_message_ordering: false });
    expect(root.module?.function?.[0]).toMatchObject({ source: './modules/function', for_each: `\${local.functions}` });
    expect(local('functions')).toContain('"dedup", "delay", "fifo"');
  });

  test('exactly the collections whose records end have a TTL policy on expireAt', () => {
    expect(local('ttl_collections')).toEqual(['ptk-dedup', 'ptk-outbox', 'ptk-delays', 'ptk-payloads', 'ptk-lateness']);
    const [firestore] = root.module?.firestore ?? [];
    expect(firestore).toMatchObject({ ttl_field: 'expireAt' });
    expect(firestore?.ttl_collections).toContain(' in local.ttl_collections :');
    const fields = resources('google_firestore_field').filter((field) => 'ttl_config' in field);
    expect(fields).toHaveLength(1);
    expect(fields[0]).toMatchObject({ for_each: `\${toset(var.ttl_collections)}`, field: `\${var.ttl_field}`, index_config: [{}] });
  });

  test('functions and App Engine run on nodejs24', () => {
    const runtime = configurations.get('variables.tf')?.variable?.runtime?.[0];
    expect(runtime).toMatchObject({ default: 'nodejs24' });
    const builds = resources('google_cloudfunctions2_function').map(({ build_config }) => (build_config as Body[])[0]?.runtime);
    const versions = resources('google_app_engine_standard_app_version').map((version) => version.runtime);
    expect([...builds, ...versions]).toEqual([`\${var.runtime}`, `\${var.runtime}`]);
    for (const name of ['function', 'delay']) expect(root.module?.[name]?.[0]).toMatchObject({ runtime: `\${var.runtime}` });
  });

  test('every environment name is one that the deployables read, and each of these is given', () => {
    expect([...new Set(namesGiven(all))].sort()).toEqual([...declaredVariables].sort());
  });
});
