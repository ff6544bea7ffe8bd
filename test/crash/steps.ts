/** The way of one cell through its process. */
export type Walk = {
  /** So far, in their order. */
  readonly steps: readonly string[];
  /** At the stop of the cell this does not resolve, and from then on no step does: nothing more of it reaches anything outside. */
  step(what: string): Promise<void>;
  /**
   * The port, with a step before and after each of its calls.
   * @param name of the port, where others have calls of the same name
   */
  through<Port extends object>(port: Port, name?: string): Port;
};

const never = new Promise<never>(() => {});
/** These answer at once, with a port. */
const makers = new Set(['beside']);
/** These answer one by one. */
const listers = new Set(['dueStreams']);

/**
 * Goes through as many steps as there are awaits, whichever those are: the first `put sent`, `put done`, then `put sent 2`.
 * @param goesOn when it does after its stop; never where absent
 */
export function startWalk(stop: string, stopped: () => void, goesOn: Promise<void> = never): Walk {
  const steps: string[] = [];
  const counts = new Map<string, number>();
  let isStopped = false;
  const step: Walk['step'] = async (what) => {
    if (isStopped) await goesOn;
    const count = (counts.get(what) ?? 0) + 1;
    counts.set(what, count);
    const name = count === 1 ? what : `${what} ${count}`;
    steps.push(name);
    if (name !== stop) return;
    isStopped = true;
    stopped();
    await goesOn;
  };
  async function* listed(what: string, answers: AsyncIterable<unknown>) {
    await step(`${what} sent`);
    yield* answers;
    await step(`${what} done`);
  }
  const through: Walk['through'] = (port, name) =>
    new Proxy(port, {
      get(target, property, receiver) {
        const call: unknown = Reflect.get(target, property, receiver);
        if (typeof call !== 'function') return call;
        const what = name === undefined ? String(property) : `${name} ${String(property)}`;
        if (makers.has(String(property))) return (...args: unknown[]) => through(Reflect.apply(call, target, args), name);
        if (listers.has(String(property))) return (...args: unknown[]) => listed(what, Reflect.apply(call, target, args));
        return async (...args: unknown[]) => {
          await step(`${what} sent`);
          const answer = await Reflect.apply(call, target, args);
          await step(`${what} done`);
          return answer;
        };
      },
    });
  return { steps, step, through };
}
