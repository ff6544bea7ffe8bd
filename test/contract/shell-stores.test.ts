import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openDedupStore } from '../../src/shell/dedup-store.ts';
import { type Environment, readSettings } from '../../src/shell/settings.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { dedupRecord } from '../support/dedup-records.ts';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { startRedisServer, startSecureRedisServer, testAuthority } from '../support/redis-server.ts';

/** Opens the store that the settings name, as a deployable does, and claims a key in it. */
async function claimedWith(environment: Environment) {
  const warnings: object[] = [];
  const settings = readSettings('redrive', { GOOGLE_CLOUD_PROJECT: 'ptk-shell', STORE: 'redis', ...environment });
  const { store, close } = await openDedupStore(settings, { ...silentLog, warn: (fields) => void warnings.push(fields) });
  try {
    const record = dedupRecord();
    await store.put('c~k', record, 'absent', 60_000);
    expect((await store.get('c~k'))?.record).toEqual(record);
  } finally {
    await close();
  }
  return warnings;
}

describe('the store that a deployable opens', () => {
  test('is a Redis cluster with REDIS_CLUSTER=on', async () => {
    const cluster = await startRedisCluster();
    await claimedWith({ REDIS_CLUSTER: 'on', REDIS_URL: cluster.nodes[0]?.url }).finally(() => cluster.close());
  });

  test('is a Redis behind TLS and a password, with the CA of REDIS_CA_FILE and not without it', async () => {
    const server = await startSecureRedisServer('dedup', 'pass/word');
    const folder = await mkdtemp(join(tmpdir(), 'shell-stores-'));
    const authority = join(folder, 'ca.pem');
    await writeFile(authority, testAuthority);
    try {
      await claimedWith({ REDIS_URL: server.url, REDIS_CA_FILE: authority });
      await expect(claimedWith({ REDIS_URL: server.url })).rejects.toMatchObject({ code: 'INVALID_SETTINGS' });
    } finally {
      await server.kill();
      await rm(folder, { recursive: true });
    }
  });

  test.each([
    ['noeviction', []],
    ['volatile-lru', [{ policy: 'volatile-lru' }]],
  ])('with maxmemory-policy %s is warned about by %j', async (policy, warnings) => {
    const server = await startRedisServer('--maxmemory-policy', policy);
    expect(await claimedWith({ REDIS_URL: server.url }).finally(() => server.kill())).toEqual(warnings);
  });
});
