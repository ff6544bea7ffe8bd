export type Call = { readonly method: string; readonly args: readonly unknown[] };

/**
 * A client as the library gets it, whose calls are kept: what was sent since they were last taken, and with which arguments. Copies of
 * them: V8 would see that what the library makes for a call lives on, and make it where only a full collection looks.
 */
export function recorded<Client extends object>(client: Client): { readonly client: Client; taken(): readonly Call[] } {
  let calls: Call[] = [];
  const seen = <Seen extends object>(target: Seen): Seen =>
    new Proxy(target, {
      get(_, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          const returned: unknown = value.apply(target, args);
          // The same client with other options: what is sent through it counts too.
          if (!(returned instanceof Promise)) return typeof returned === 'object' && returned !== null ? seen(returned) : returned;
          calls.push({ method: String(name), args: structuredClone(args) });
          return returned;
        };
      },
    });
  return {
    client: seen(client),
    taken() {
      const taken = calls;
      calls = [];
      return taken;
    },
  };
}

/** Sends a call bare: nothing is decided, encoded or kept. */
export const sent = (client: object, { method, args }: Call): Promise<unknown> => Reflect.get(client, method).apply(client, args);
