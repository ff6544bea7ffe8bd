/** The way of one cell through its process. */
export type Walk = {
  /** So far, in their order. */
  readonly steps: readonly string[];
  /** At the stop of the cell this never resolves, and from then on no step does: nothing more of it reaches anything outside. */
  step(what: string): Promise<void>;
  /** The port, with a step before and after each of its calls. */
  through<Port extends object>(port: Port): Port;
};

const never = new Promise<never>(() => {});
/** These answer at once, with a port. */
const makers = new Set(['beside']);
/** These answer one by one. */
const listers = new Set(['dueStreams']);

/** Goes through as many steps as there are awaits, whichever those are: the first `put sent`, `put done`, then `put sent 2`. */
export function startWalk(stop: string, stopped: () => void): Walk {
  const steps: string[] = [];
  const counts = new Map<string, number>();
  let isStopped = false;
  const step: Walk['step'] = async (what) => {
    if (isStopped) await never;
    const count = (counts.get(what) ?? 0) + 1;
    counts.set(what, count);
    const name = count === 1 ? what : `${what} ${count}`;
    steps.push(name);
    if (name !== stop) return;
    isStopped = true;
    stopped();
    await never;
  };
  async function* listed(property: PropertyKey, answers: AsyncIterable<unknown>) {
    await step(`${String(property)} sent`);
    yield* answers;
    await step(`${String(property)} done`);
  }
  const through: Walk['through'] = (port) =>
    new Proxy(port, {
      get(target, property, receiver) {
        const call: unknown = Reflect.get(target, property, receiver);
        if (typeof call !== 'function') return call;
        if (makers.has(String(property))) return (...args: unknown[]) => through(Reflect.apply(call, target, args));
        if (listers.has(String(property))) return (...args: unknown[]) => listed(property, Reflect.apply(call, target, args));
        return async (...args: unknown[]) => {
          await step(`${String(property)} sent`);
          const answer = await Reflect.apply(call, target, args);
          await step(`${String(property)} done`);
          return answer;
        };
      },
    });
  return { steps, step, through };
}
