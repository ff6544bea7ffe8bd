import { type Emulator, type EmulatorOptions, startEmulator, type Time } from '../emulator/server.ts';

/** The hooks of a test runner: Vitest's `beforeAll`, `afterEach` and `afterAll`, or `before`, `afterEach` and `after` of `node:test`. */
export type TestHooks = {
  readonly beforeAll: (run: () => Promise<void>) => unknown;
  readonly afterEach: (run: () => Promise<void>) => unknown;
  readonly afterAll: (run: () => Promise<void>) => unknown;
};

/** How long, in real ms, a client that was closed may take until the emulator has seen it. */
const closingMs = 1_000;
const lookAgainMs = 10;

/**
 * One emulator for the tests of a file: started on free ports with its variables in `process.env`, emptied after each test, closed and
 * the variables restored after all. A test that leaves a subscriber, a listener or a task behind fails.
 *
 * @returns the running emulator, from the first test or hook of the file on
 */
export function useEmulator<T extends Time = Time>(hooks: TestHooks, options: EmulatorOptions & { time?: T } = {}): () => Emulator<T> {
  let running: Emulator<T> | undefined;
  let restore = () => {};
  const emulator = () => {
    if (!running) throw new Error('the emulator runs from the first test of the file on; build clients in a test or a hook');
    return running;
  };
  hooks.beforeAll(async () => {
    running = await startEmulator(options);
    restore = setEnvironment(running.env);
  });
  hooks.afterEach(async () => {
    const left = await leftBehind(emulator());
    await emulator().reset();
    if (left.length > 0) throw new Error(`the test left behind: ${left.join(', ')}`);
  });
  hooks.afterAll(async () => {
    restore();
    await running?.close();
    running = undefined;
  });
  return emulator;
}

/** What still holds on to the emulator once clients that were closed have had time to say so. */
async function leftBehind(emulator: Emulator): Promise<string[]> {
  const untilMs = performance.now() + closingMs;
  for (;;) {
    const left = [
      ...emulator.pubsub.openStreams().map((subscription) => `a subscriber of ${subscription}`),
      ...emulator.firestore.openListens().map((target) => `a listener to ${target}`),
      ...emulator.tasks.pending().map(({ name }) => `the task ${name}`),
    ];
    if (left.length === 0 || performance.now() >= untilMs) return left;
    await new Promise((resolve) => setTimeout(resolve, lookAgainMs));
  }
}

function setEnvironment(env: Readonly<Record<string, string>>): () => void {
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, env);
  return () => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
}
