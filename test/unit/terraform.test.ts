import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readConfigurations, resourcesOf, terraformFolder } from '../../scripts/terraform-hcl.ts';
import { allowedSettings } from '../../scripts/terraform-settings.ts';
import { dedupOptions } from '../../src/shared/dedup/options.ts';
import { delayOptions } from '../../src/shared/delay/options.ts';
import { fifoOptions } from '../../src/shared/fifo/options.ts';
import { outboxOptions } from '../../src/shared/outbox/options.ts';
import { settings } from '../../src/shell/settings.ts';

/** Of a release elsewhere than on App Engine and of a Redis Cluster, neither of which is deployed. */
const notDeployed = ['RELEASE_URL', 'REDIS_CLUSTER'];

const configurations = await readConfigurations();
const all = [...configurations.values()];
const only = (type: string) => resourcesOf(configurations, new RegExp(`^${type}$`));
const definitions = JSON.parse(readFileSync(`${terraformFolder}firestore.indexes.json`, 'utf8'));
const textOf = (file: string) => readFileSync(terraformFolder + file, 'utf8');

/** Upper-case names that are given a value: `NAME = …` or `"NAME" => …` in an expression, or a key of an object. */
function namesGiven(value: unknown): string[] {
  if (typeof value === 'string') return [...value.matchAll(/\b([A-Z][A-Z0-9_]+)"?\s*(?:=>|=[^=>])/g)].flatMap(([, name]) => name ?? []);
  if (Array.isArray(value)) return value.flatMap(namesGiven);
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, inner]) => [...(/^[A-Z][A-Z0-9_]+$/.test(key) ? [key] : []), ...namesGiven(inner)]);
}
const given = new Set(all.flatMap(({ locals, module }) => namesGiven([locals, module])));
const settable = new Set(Object.values(allowedSettings()).flatMap(Object.keys));

describe('Terraform', () => {
  test('has every module that it calls, and calls every module that it has', () => {
    const called = all.flatMap(({ module = {} }) => Object.values(module).map(([body]) => String(body?.source).replace(/^.*\//, '')));
    const there = [...configurations.keys()].flatMap((file) => /^modules\/(\w+)\//.exec(file)?.[1] ?? []);
    expect([...new Set(called)].sort()).toEqual([...new Set(there)].sort());
    expect([...new Set(there)].sort()).toEqual(
      ['cache', 'delay', 'firestore', 'functions', 'observability', 'services', 'sources', 'subscription', 'topic'].sort(),
    );
  });

  test('pushes with message ordering off, and nowhere else', () => {
    const pushing = only('google_pubsub_subscription').filter(({ body }) => 'push_config' in ((body.dynamic ?? {}) as object));
    expect(pushing.map(({ folder }) => folder)).toEqual(['modules/subscription']);
    expect(pushing[0]?.body).toMatchObject({ enable_message_ordering: false });
    expect(only('google_cloudfunctions2_function').filter(({ body }) => 'event_trigger' in body)).toEqual([]);
  });

  test('removes by TTL exactly what ends, by expireAt', () => {
    const ttl = definitions.fieldOverrides.filter((override: { ttl?: boolean }) => override.ttl);
    expect(ttl.map(({ collectionGroup, fieldPath }: Record<string, string>) => [collectionGroup, fieldPath])).toEqual([
      ['ptk-outbox', 'expireAt'],
      ['ptk-lateness', 'expireAt'],
      ['ptk-dedup', 'expireAt'],
      ['ptk-delays', 'expireAt'],
      ['ptk-payloads', 'expireAt'],
    ]);
    expect(only('google_firestore_field').map(({ body }) => body.for_each)).toEqual([`\${local.overrides}`]);
    expect(only('google_firestore_index').map(({ body }) => body.for_each)).toEqual([`\${local.indexes}`]);
  });

  test('runs functions and App Engine on nodejs24', () => {
    expect(configurations.get('variables.tf')?.variable?.runtime?.[0]).toMatchObject({ default: 'nodejs24' });
    const runtimes = ['deployables.tf', 'modules/functions/main.tf', 'modules/delay/main.tf'].map(
      (file) => /runtime += (.+)/.exec(textOf(file))?.[1],
    );
    expect(runtimes).toEqual(['var.runtime', 'var.runtime', 'var.app_engine.runtime']);
  });

  test('keeps one version of the App Engine service, so that new code is deployed in its place', () => {
    expect(only('google_app_engine_standard_app_version').map(({ body }) => body.version_id)).toEqual(['live']);
  });
});

describe('environment variables', () => {
  const declared = new Set([
    ...Object.keys(settings),
    ...[dedupOptions, fifoOptions, outboxOptions, delayOptions].flatMap((table) => Object.values(table).map(({ env }) => env)),
  ]);

  test('that Terraform gives are all declared by the code', () => {
    expect([...given].filter((name) => !declared.has(name))).toEqual([]);
  });

  test('of the code are given by Terraform, or left to the user, or of what is not deployed', () => {
    expect([...declared].filter((name) => !given.has(name) && !settable.has(name)).sort()).toEqual(notDeployed.sort());
  });

  test.each(['dedup', 'fifo', 'delay', 'appengine'])('that %s requires are given', (program) => {
    const required = Object.entries(settings).filter(
      ([, setting]) => 'requiredBy' in setting && (setting.requiredBy as readonly string[]).includes(program),
    );
    expect(required.map(([name]) => name).filter((name) => !given.has(name))).toEqual([]);
  });

  test('never let keys live longer than they may: 31 days, 31 days more as a dead letter, and one', () => {
    const limit = /retention_seconds\] : seconds >= 600 && seconds <= (\d+)/.exec(textOf('variables.tf'))?.[1];
    expect(limit).toBe('2678400');
    expect(2 * 2_678_400 + 86_400).toBe(5_443_200);
    expect(dedupOptions.ttlSeconds.max).toBeGreaterThanOrEqual(5_443_200);
  });

  test('have a lease for the longest ack deadline, and the defaults of the code', () => {
    expect(dedupOptions.leaseMs.max).toBeGreaterThanOrEqual(600_000);
    expect(textOf('environment.tf')).toContain(`max(${dedupOptions.leaseMs.default}, var.subscription.ack_deadline_seconds * 1000)`);
    expect(textOf('rules.tf')).toContain(`FIFO_LEASE_MS), ${fifoOptions.leaseMs.default})`);
  });
});
