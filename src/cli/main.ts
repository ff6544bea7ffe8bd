#!/usr/bin/env node
const [command, ...args] = process.argv.slice(2);

const usage = `pubsub-toolkit: Google Cloud Pub/Sub delivered once, later and in order

  pubsub-toolkit emulator [--pubsub-port N] [--firestore-port N] [--tasks-port N] [--json]
      Pub/Sub, Firestore and Cloud Tasks on loopback until SIGTERM; port 0 takes any free one.
      --app-engine-url URL   where App Engine tasks go
      --faults FILE          JSON array of fault rules; with --seed N the same faults each time
      --admin-port N         faults and backlog over HTTP

  pubsub-toolkit demo [--seed N] [--chaos 0..1] [--rounds N] [--keep] [--without dedup|fifo]
      329 real webhooks through the whole toolkit, with faults; exit code 0 if each had its effect once, in order, on time.
`;

// Loaded by need: the emulator must not wait for what the demo imports.
const run = {
  emulator: async () => (await import('./emulator.ts')).runEmulator(args),
  demo: async () => (await import('./demo/demo.ts')).runDemo(args),
};
if (command === 'emulator' || command === 'demo') {
  try {
    process.exitCode = (await run[command]()) ?? 0;
  } catch (error) {
    console.error(`pubsub-toolkit ${command}: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
} else {
  (command === undefined || command === '--help' || command === 'help' ? console.log : console.error)(usage);
  process.exitCode = command === undefined || command === '--help' || command === 'help' ? 0 : 2;
}
