import { embeddedOnly, production } from './explanations.ts';
import type { NumberedTests } from './numbered-tests.ts';
import { rewritten } from './statements.ts';

export type Row = {
  readonly number: number;
  readonly statement: string;
  readonly embedded: string;
  readonly google: string;
  readonly note: string;
};

const heading = `# Conformance

The numbered statements of \`docs/facts.md\`, section G, and what the embedded emulator and Google's own emulators make of the tests that
carry their numbers. Written by \`npm run conformance\`.

- **embedded**: \`pass\` if every test of the statement passes.
- **Google's emulator**: \`pass\` if every test that was put to it passes, \`differs\` if one fails as the note says, \`not applicable\` if there is
  no test that could be put to it. Where it differs the embedded emulator follows production, for which the note names the source.

| N | statement | embedded | Google's emulator | note |
|---|---|---|---|---|
`;

/** What the table says about a statement beside the results: a function of the sources alone. */
export function noteOf(number: number, { differs = [], notApplicable = [] }: Partial<NumberedTests> = {}): string {
  const { [number]: rewriting } = rewritten;
  const unasked = [...notApplicable, ...(embeddedOnly[number] === undefined ? [] : [embeddedOnly[number]])];
  return [
    rewriting && `Rewritten: ${rewriting.reason}.`,
    differs.length > 0 && `Google's emulator ${differs.join('; ')}. Production: ${production[number] ?? '?'}.`,
    unasked.length > 0 && `Not put to Google's: ${unasked.join('; ')}.`,
  ]
    .filter(Boolean)
    .join(' ');
}

const cell = (text: string) => text.replaceAll('|', '\\|');

export const renderTable = (rows: readonly Row[]): string =>
  heading +
  rows
    .map(
      ({ number, statement, embedded, google, note }) => `| ${number} | ${cell(statement)} | ${embedded} | ${google} | ${cell(note)} |\n`,
    )
    .join('');

/** The rows of a file that `renderTable` made. */
export const readTable = (markdown: string): readonly Row[] =>
  [...markdown.matchAll(/^\| (\d+) \| (.*) \| (.*) \| (.*) \| (.*) \|$/gm)].map(
    ([, number, statement = '', embedded = '', google = '', note = '']) => ({
      number: Number(number),
      statement: statement.replaceAll('\\|', '|'),
      embedded,
      google,
      note: note.replaceAll('\\|', '|'),
    }),
  );
