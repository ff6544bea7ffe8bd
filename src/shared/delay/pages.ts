import type { System } from '../ports.ts';
import { within } from '../waiting.ts';
import type { DelayLedger, DelayState, Listed, Page } from './store.ts';

const pageSize = 100;

/**
 * The entries in a state, the earliest due first, page by page.
 * @throws STORE_UNAVAILABLE
 */
export async function* pagesOf(
  { ledger, system, storeTimeoutMs }: { readonly ledger: DelayLedger; readonly system: System; readonly storeTimeoutMs: number },
  state: DelayState,
): AsyncGenerator<readonly Listed[], void, undefined> {
  for (let after: Page | undefined; ; ) {
    const page = await within(system.clock, storeTimeoutMs, 'STORE_UNAVAILABLE', 'list', ledger.inState(state, pageSize, after));
    yield page;
    const last = page.at(-1);
    if (!last || page.length < pageSize) return;
    after = { key: last.key, dueAtMs: last.stored.record.dueAtMs };
  }
}
