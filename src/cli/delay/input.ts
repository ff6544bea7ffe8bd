import { parseArgs } from 'node:util';
import { instantOf } from '../../shared/delay/due.ts';
import { latenessHours } from '../../shared/delay/lateness.ts';
import { ledgerKeyOf } from '../../shared/delay/ledger.ts';
import type { DelayState } from '../../shared/delay/store.ts';

const flags = {
  rate: { type: 'string' },
  queues: { type: 'string' },
  hours: { type: 'string' },
  state: { type: 'string' },
  at: { type: 'string' },
  json: { type: 'boolean' },
} as const;

type Flag = keyof typeof flags;
type Values = ReturnType<typeof parseArgs<{ options: typeof flags }>>['values'];

/** Each command with its flags, beside `--json`. */
const verbs = {
  status: ['hours'],
  plan: ['rate', 'queues'],
  repair: [],
  get: [],
  list: ['state'],
  cancel: [],
  reschedule: ['at'],
} as const;
type Verb = keyof typeof verbs;
const states: readonly DelayState[] = ['pending', 'releasing', 'fired', 'cancelled'];
const defaultHours = 24;
const mostPerSecond = 1_000_000;
const mostQueues = 10_000;

export type DelayCommand = { readonly json: boolean } & (
  | { readonly verb: 'plan'; readonly perSecond: number; readonly queues: number | undefined }
  | ConnectedCommand
);

/** A command that asks the services. */
export type ConnectedCommand =
  | { readonly verb: 'status'; readonly hours: number }
  | { readonly verb: 'repair' }
  | { readonly verb: 'get' | 'cancel'; readonly id: string }
  | { readonly verb: 'list'; readonly state: DelayState }
  | { readonly verb: 'reschedule'; readonly id: string; readonly at: string };

/** What the words of the command ask for; throws a sentence that names the word and what it may be. */
export function delayCommandOf(args: string[]): DelayCommand {
  const { values, positionals } = parseArgs({ args, options: flags, allowPositionals: true });
  const [verb = '', ...words] = positionals;
  if (!isVerb(verb)) throw new Error(`"${verb}" is no command; it must be one of ${Object.keys(verbs).join(', ')}`);
  const allowed: readonly Flag[] = [...verbs[verb], 'json'];
  for (const flag of Object.keys(values) as Flag[])
    if (!allowed.includes(flag)) throw new Error(`${verb} takes no --${flag}; it takes ${allowed.map((name) => `--${name}`).join(', ')}`);
  return { ...commandOf(verb, words, values), json: values.json ?? false };
}

const isVerb = (word: string): word is Verb => Object.hasOwn(verbs, word);

function commandOf(verb: Verb, words: readonly string[], values: Values) {
  const [word] = words;
  switch (verb) {
    case 'get':
    case 'cancel':
      return { verb, id: idOf(verb, words) };
    case 'reschedule': {
      const id = idOf(verb, words);
      const { at } = values;
      if (at === undefined) throw new Error('reschedule needs --at');
      instantOf({ at }, 0);
      return { verb, id, at };
    }
  }
  if (word !== undefined) throw new Error(`"${word}" is one word too many; ${verb} takes none`);
  switch (verb) {
    case 'status':
      return { verb, hours: wholeNumber('hours', values.hours, latenessHours) ?? defaultHours };
    case 'repair':
      return { verb };
    case 'list':
      return { verb, state: stateOf(values.state ?? 'pending') };
    case 'plan': {
      const perSecond = wholeNumber('rate', values.rate, mostPerSecond);
      if (perSecond === undefined) throw new Error('plan needs --rate, in messages a second');
      return { verb, perSecond, queues: wholeNumber('queues', values.queues, mostQueues) };
    }
  }
}

function idOf(verb: Verb, [id, more]: readonly string[]): string {
  if (id === undefined) throw new Error(`${verb} needs a delay id`);
  if (more !== undefined) throw new Error(`"${more}" is one word too many; ${verb} takes one delay id`);
  ledgerKeyOf(id);
  return id;
}

function stateOf(text: string): DelayState {
  const state = states.find((name) => name === text);
  if (state === undefined) throw new Error(`--state is "${text}"; it must be one of ${states.join(', ')}`);
  return state;
}

function wholeNumber(flag: Flag, text: string | undefined, most: number): number | undefined {
  if (text === undefined) return undefined;
  const value = /^[1-9]\d{0,14}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= most)) throw new Error(`--${flag} is "${text}"; it must be a whole number from 1 to ${most}`);
  return value;
}
