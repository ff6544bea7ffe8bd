import type { Protection } from './controls.ts';
import type { instants, Role } from './plan.ts';

type Instant = keyof typeof instants;
type Sent = { readonly due: Instant; readonly isLarge?: boolean };

/** What is delayed, and what a client asks for meanwhile. */
export type Situation = {
  readonly name: string;
  /** In their order; the last one counts. */
  readonly messages: readonly Sent[];
  readonly hasLedger: boolean;
  /** Published as if it had lain in its subscription until it was due after two hops. */
  readonly isOld?: boolean;
  /** Each message has a number of its stream. */
  readonly isNumbered?: boolean;
  /** Scheduled by a call that nothing stops, again and again. */
  readonly isRecurring?: boolean;
  readonly call?: { readonly kind: 'schedule' | 'reschedule'; readonly due: Instant } | { readonly kind: 'cancel' };
  /** What its client leaves without a task is mended by the older one. */
  readonly isUnrepaired?: boolean;
  /** A cancel comes when the release has stopped. */
  readonly isCancelledLate?: boolean;
  /** Nobody is killed: what has stopped goes on after the cancel. */
  readonly goesOn?: boolean;
  /** Of what a process is killed in it. */
  readonly roles: readonly Role[];
};

const due = { due: 'due' } as const;
const plain: Situation = { name: 'a message', messages: [due], hasLedger: false, roles: ['function', 'release'] };
const ledger: Situation = { name: 'with ledger', messages: [due], hasLedger: true, roles: ['function', 'release'] };
const cancelled: Situation = {
  name: 'cancelled at its release',
  messages: [due],
  hasLedger: true,
  isNumbered: true,
  isCancelledLate: true,
  roles: ['release'],
};
const raced: Situation = { ...cancelled, name: 'cancelled at its release, which goes on', goesOn: true };
const scheduled: Situation = {
  name: 'schedule',
  messages: [],
  hasLedger: true,
  call: { kind: 'schedule', due: 'due' },
  roles: ['client'],
};

export const situations: readonly Situation[] = [
  plain,
  { name: 'with payload', messages: [{ due: 'due', isLarge: true }], hasLedger: false, roles: ['function', 'release'] },
  { name: 'in hops', messages: [due], hasLedger: false, isOld: true, roles: ['function', 'hop', 'release'] },
  ledger,
  {
    name: 'with ledger and payload, in hops',
    messages: [{ due: 'due', isLarge: true }],
    hasLedger: true,
    isOld: true,
    roles: ['function', 'hop', 'release'],
  },
  {
    name: 'replaced',
    messages: [{ due: 'due', isLarge: true }, due],
    hasLedger: true,
    isNumbered: true,
    roles: ['function', 'release'],
  },
  { name: 'recurring', messages: [], hasLedger: true, isRecurring: true, roles: ['release'] },
  cancelled,
  raced,
  scheduled,
  {
    name: 'schedule in place of a message',
    messages: [due],
    hasLedger: true,
    isNumbered: true,
    call: { kind: 'schedule', due: 'due' },
    roles: ['client'],
  },
  { name: 'cancel', messages: [due], hasLedger: true, isNumbered: true, call: { kind: 'cancel' }, roles: ['client'] },
  {
    name: 'reschedule, later',
    messages: [{ due: 'early' }],
    hasLedger: true,
    isUnrepaired: true,
    call: { kind: 'reschedule', due: 'due' },
    roles: ['client'],
  },
  { name: 'reschedule, sooner', messages: [due], hasLedger: true, call: { kind: 'reschedule', due: 'sooner' }, roles: ['client'] },
];

/** A part of the matrix for each, in which the protection that it does without is needed. */
export const controls: readonly { readonly without: Protection; readonly situation: Situation; readonly role: Role }[] = [
  { without: 'hashed task names', situation: plain, role: 'function' },
  { without: 'the task before the ack', situation: plain, role: 'function' },
  { without: 'the dedup of the release', situation: plain, role: 'release' },
  { without: 'the version of the ledger', situation: raced, role: 'release' },
  { without: '429 for a busy release', situation: plain, role: 'release' },
  { without: '429 for a busy release', situation: ledger, role: 'release' },
  { without: 'the repair', situation: scheduled, role: 'client' },
];
