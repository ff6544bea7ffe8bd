import type { Context } from './ports.ts';

type Known = { readonly [Name in Exclude<keyof Context, 'signal'>]?: Context[Name] | undefined };

/**
 * A context whose signal is made when somebody looks at it; most handlers never do, and a signal costs more than all else. The property
 * is its own, so that `{ ...context }` keeps it, and its getter is one for all: a literal with a getter would get a hidden class of its
 * own from V8, which keeps all that the getter sees until the next full collection.
 */
class LazyContext implements Context {
  static readonly #signalProperty: PropertyDescriptor = {
    enumerable: true,
    configurable: true,
    get(this: LazyContext) {
      this.#signal ??= this.#makeSignal();
      return this.#signal;
    },
  };
  declare readonly signal: AbortSignal;
  readonly idempotencyKey?: string;
  readonly fence?: number;
  readonly places?: number;
  readonly round?: number;
  readonly #makeSignal: () => AbortSignal;
  #signal: AbortSignal | undefined;

  constructor(makeSignal: () => AbortSignal, { idempotencyKey, fence, places, round }: Known) {
    this.#makeSignal = makeSignal;
    if (idempotencyKey !== undefined) this.idempotencyKey = idempotencyKey;
    if (fence !== undefined) this.fence = fence;
    if (places !== undefined) this.places = places;
    if (round !== undefined) this.round = round;
    Object.defineProperty(this, 'signal', LazyContext.#signalProperty);
  }
}

export const lazyContext = (makeSignal: () => AbortSignal, known: Known = {}): Context => new LazyContext(makeSignal, known);
