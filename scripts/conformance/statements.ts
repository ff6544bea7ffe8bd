export type Rewritten = { readonly text: string; readonly reason: string };

/** Statements that cannot be tested as they stand, and what is tested in their place; six at most. */
export const rewritten: Readonly<Record<number, Rewritten>> = {};

/** The numbered statements of section G, from the text of `docs/facts.md`. */
export function readStatements(facts: string): ReadonlyMap<number, string> {
  const start = facts.indexOf('\n## G. ');
  const section = facts.slice(start, facts.indexOf('\n## ', start + 1));
  return new Map(
    [...section.matchAll(/^(\d+)\. (.+)$/gm)].map(([, number, text = '']) => [Number(number), rewritten[Number(number)]?.text ?? text]),
  );
}
