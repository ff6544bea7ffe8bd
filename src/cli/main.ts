#!/usr/bin/env node
const [command, ...args] = process.argv.slice(2);

const usage = `pubsub-toolkit: Google Cloud Pub/Sub delivered once, later and in order

  pubsub-toolkit emulator [--pubsub-port N] [--firestore-port N] [--tasks-port N] [--json]
      Pub/Sub, Firestore and Cloud Tasks on loopback until SIGTERM; port 0 takes any free one.
      --app-engine-url URL       where App Engine tasks go
      --data-dir DIR             keeps all state, written before each call is answered
      --faults FILE --seed N     JSON array of fault rules; the same seed gives the same faults, without one it is drawn and printed
      --time manual              time stands still until POST /time {"advanceMs":N}
      --ordering strict          one message of an ordering key at a time
      --firestore-indexes FILE   firestore.indexes.json; a query without its composite index is refused
      Each port answers HTTP too: GET / · POST /shutdown · POST /reset · GET and PUT /faults · GET /backlog · GET and POST /time ·
      GET /oauth2/v3/certs; that of Pub/Sub also POST /v1/projects/P/topics/T:publish

  pubsub-toolkit emulator env [--pubsub-port N] [--firestore-port N] [--tasks-port N] [--data-dir DIR]
      The variables that clients need, as shell exports.

  pubsub-toolkit demo [--seed N] [--chaos 0..1] [--rounds N] [--keep] [--without dedup|fifo]
      329 real webhooks through the whole toolkit, with faults; exit code 0 if each had its effect once, in order, on time.
      EMULATORS=official runs it on Google's Pub/Sub and Firestore emulators, where they are installed.

  pubsub-toolkit redrive --subscription DEAD_LETTERS --as accept-new|keep-old [--message-id ID]… [--topic TOPIC] [--limit N] [--dry-run]
      Decides dead letters of dedup: other content under a finished key, or a run that died with effects outside. accept-new lets the
      letter's message run, once, and copies of the old one stay duplicates; keep-old drops the letter. Other letters are left.
      --message-id ID            of a letter, or of the message that it first was
      --topic TOPIC              where the message is published; else on the topic that it came from, whose other subscribers get it too
      --store STORE              firestore, redis or two-tier; reached by the variables of the dedup function: GOOGLE_CLOUD_PROJECT,
                                 STORE, FIRESTORE_DATABASE, COLLECTION_PREFIX, REDIS_URL, REDIS_CLUSTER, REDIS_CA_FILE
      --dry-run                  prints the table, and changes nothing

  pubsub-toolkit fifo status|resume STREAM          where a consumer stands in a stream; lets a blocked or diverted one go on
  pubsub-toolkit fifo blocked                       the streams that stand still, or go to a lane
  pubsub-toolkit fifo skip STREAM --number N        passes over the next number; its message, parked or late, is a dead letter
  pubsub-toolkit fifo reset STREAM [--epoch E] [--to N]   behind number N (default 0) of the epoch that waits, or of another one
  pubsub-toolkit fifo replay STREAM --from N        numbers from N on are handled again, as they come again after a seek
      --consumer NAME            or CONSUMER; also GOOGLE_CLOUD_PROJECT, FIRESTORE_DATABASE, COLLECTION_PREFIX
      --dead-letter-topic TOPIC  or DEAD_LETTER_TOPIC; where a skipped message goes
      --force                    takes the stream from the process that holds it, whose effect may have happened
      --json                     one line of JSON. Exit code 1: refused, and nothing was changed. What waits runs with the next sweep, due at once.

  pubsub-toolkit delay status [--hours N]           queues, entries of the ledger by state, and how late messages were in the last N hours (24);
                                                    exit code 1: a queue does not run, or an entry is overdue by more than a minute
  pubsub-toolkit delay repair                       gives each entry whose task is gone a task again, but for those written in the last
                                                    minute; exit code 1: some could get none
  pubsub-toolkit delay list [--state pending|releasing|fired|cancelled]    the pending entries, the earliest first
  pubsub-toolkit delay get|cancel ID                what is delayed under an id; cancels it
  pubsub-toolkit delay reschedule ID --at INSTANT   by RFC 3339, such as 2026-01-31T09:30:00Z; get, cancel and reschedule: exit code 1: refused
      Reached by the variables of the delay function: GOOGLE_CLOUD_PROJECT, TASK_QUEUES, FIRESTORE_DATABASE, COLLECTION_PREFIX, RELEASE_*
  pubsub-toolkit delay plan --rate R [--queues N]   what R messages a second need; exit code 1: N queues are too few. Asks no service
      --json                     one line of JSON; list: one for each entry. A lateness of null: more than a day, or with a count of 0 none

  pubsub-toolkit relay [--once] [--json]
      Publishes what the outbox holds, in order within each stream, until SIGTERM; woken by Firestore, and in any case every
      OUTBOX_RELAY_POLL_MS. Any number of them may run. Reached by GOOGLE_CLOUD_PROJECT, FIRESTORE_DATABASE, COLLECTION_PREFIX, OUTBOX_*.
      --once                     one pass; exit code 1 where something could not be published
      --json                     one line of JSON for each pass that did something
`;

// Loaded by need: the emulator must not wait for what the demo imports.
const run = {
  emulator: async () => (await import('./emulator.ts')).runEmulator(args),
  demo: async () => (await import('./demo/demo.ts')).runDemo(args),
  redrive: async () => (await import('./redrive.ts')).runRedrive(args),
  fifo: async () => (await import('./fifo.ts')).runFifo(args),
  delay: async () => (await import('./delay.ts')).runDelay(args),
  relay: async () => (await import('./relay.ts')).runRelay(args),
};
if (command !== undefined && Object.hasOwn(run, command)) {
  try {
    process.exitCode = (await run[command as keyof typeof run]()) ?? 0;
  } catch (error) {
    console.error(`pubsub-toolkit ${command}: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
} else {
  (command === undefined || command === '--help' || command === 'help' ? console.log : console.error)(usage);
  process.exitCode = command === undefined || command === '--help' || command === 'help' ? 0 : 2;
}
