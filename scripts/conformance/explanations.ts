const streamLimits = 'every stream stops at its own limits (A.4: proto, seen)';
const retryPolicy = 'a nacked message is held back by the retry policy of its subscription (A.5: proto)';
const contention = 'read locks are shared, and of commits that contend one gets through at once (B.6: googleapis/nodejs-firestore)';

/** What production does where Google's emulator differs, with its source as marked in `docs/facts.md`. */
export const production: Readonly<Record<number, string>> = {
  3: 'INVALID_ARGUMENT (A.3: googleapis/google-cloud-java#4757, apache/beam#23022)',
  4: 'a permanent code, since clients try UNKNOWN and INTERNAL again (A.2: client)',
  7: 'INVALID_ARGUMENT outside 10 to 600 s (A.3: proto)',
  11: 'INVALID_ARGUMENT outside 5 to 100 (A.3: range proto, code recalled)',
  15: 'INVALID_ARGUMENT (A.3: googleapis/java-pubsub#2312, snowplow/enrich#485)',
  18: 'INVALID_ARGUMENT, since all messages of a request share one key (A.6: rule proto, code recalled)',
  20: 'the first answer carries the properties, the only place from which a client learns them (A.4: proto, client)',
  21: `${streamLimits}, and zeros in a later request mean "not set" (A.4: client, seen)`,
  22: `${streamLimits}, and ends with INVALID_ARGUMENT if they are set again (A.3: proto)`,
  23: streamLimits,
  24: streamLimits,
  27: 'NOT_FOUND, as for every call on a subscription that is missing (A.3: proto, pstest)',
  36: retryPolicy,
  45: 'a message that is delivered again takes all later ones of its key with it, even acked ones (A.6: documentation on ordering)',
  46: retryPolicy,
  47: 'order holds up to the dead letter, which then leaves it (A.6: documentation on ordering)',
  52: 'what does not match is acked by the service, and a bad filter is INVALID_ARGUMENT (A.8: floci, pstest)',
  53: '102, 200, 201, 202 and 204 ack and all else nacks; the body holds the ordering key (A.9: documentation on push)',
  67: 'FAILED_PRECONDITION with a link to the index (B.5: recalled)',
  69: contention,
  70: contention,
  74: 'OK, since a rollback may come late or for an id that is gone (B.6: client)',
  78: 'takes up to 10 MiB and answers INVALID_ARGUMENT above (B.5: limit documented, code recalled)',
};

const manualTime = 'it takes place in manual time';
const faults = 'it needs faults';
const noTasksEmulator = 'there is no emulator of Cloud Tasks by Google';
const deployables = 'it is about functions and apps, not about an emulator';

/** Why a statement without an exception in its tests is put to the embedded emulator alone. */
export const embeddedOnly: Readonly<Record<number, string>> = {
  1: 'it starts two emulators in one process',
  2: noTasksEmulator,
  5: 'it is about the start and the stop of the embedded emulator',
  37: manualTime,
  40: manualTime,
  51: faults,
  54: 'a token is verified by the keys of the emulator that made it',
  71: manualTime,
  75: manualTime,
  76: faults,
  77: faults,
  ...Object.fromEntries(Array.from({ length: 12 }, (_, index) => [80 + index, noTasksEmulator])),
  92: deployables,
  93: deployables,
  94: deployables,
  95: deployables,
  96: 'it is about Redis',
};
