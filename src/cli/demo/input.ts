import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';

/** One real GitHub webhook on its way. */
export type Delivery = {
  /** Made before the first publish; the payloads carry no id. */
  readonly key: string;
  /** Repository and kind; `undefined` where there is no repository: not sequenced. */
  readonly stream: string | undefined;
  readonly data: Buffer;
  readonly delayMs: number | undefined;
  /** A publisher that did not hear the answer and tries again. */
  readonly publishedTwice: boolean;
};

/** When a delivery is due, for the sink: the toolkit's own instruction ends with the delay. */
export const dueAttribute = 'demo-due-at';

type Kind = { readonly name: string; readonly examples: readonly { readonly repository?: { readonly full_name?: string } }[] };

/**
 * Every payload of `@octokit/webhooks-examples`, in each round anew.
 * @param random the seed's dice
 */
export function readDeliveries(rounds: number, chaos: number, random: () => number): Delivery[] {
  const kinds: readonly Kind[] = createRequire(import.meta.url)('@octokit/webhooks-examples');
  return Array.from({ length: rounds }, (_, round) =>
    kinds.flatMap(({ name, examples }) =>
      examples.map((payload, index): Delivery => {
        const repository = payload.repository?.full_name;
        return {
          key: createHash('sha256').update(`${round}/${name}/${index}`).digest('hex').slice(0, 32),
          stream: repository && `${repository}/${name}`,
          data: Buffer.from(JSON.stringify(payload)),
          delayMs: random() < 0.2 ? 1_000 + Math.floor(random() * 4_000) : undefined,
          publishedTwice: random() < 0.2 * chaos,
        };
      }),
    ),
  ).flat();
}
