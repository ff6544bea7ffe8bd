import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { CachePersistenceLayer } from '@aws-lambda-powertools/idempotency/cache';
import type { CacheClient } from '@aws-lambda-powertools/idempotency/cache/types';

/**
 * AWS's library at its lightest: the key is a plain text, no payload is validated, and the time left is known, or it would warn on
 * every call. Its cache in the process is off: a duplicate mostly comes to another process, and ours has none either.
 */
export function powertoolsOn(client: CacheClient, keepSeconds: number): (key: string) => Promise<unknown> {
  const config = new IdempotencyConfig({ expiresAfterSeconds: keepSeconds });
  Object.assign(config, { lambdaContext: { getRemainingTimeInMillis: () => 60_000 } });
  return makeIdempotent(async (_key: string) => undefined, { persistenceStore: new CachePersistenceLayer({ client }), config });
}
