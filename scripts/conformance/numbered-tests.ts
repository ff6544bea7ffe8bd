import { nameOf, nodesOf, ourFiles, type SyntaxNode, textOf } from '../../test/rules/source.ts';

/** What the sources say about the tests of one statement. */
export type NumberedTests = {
  readonly files: readonly string[];
  /** What Google's emulator does instead. */
  readonly differs: readonly string[];
  /** What a test needs that Google's emulator has not. */
  readonly notApplicable: readonly string[];
};

type Call = { readonly numbers: readonly number[]; readonly differs: readonly string[]; readonly notApplicable: readonly string[] };

/** The tests whose titles begin with `G<number>: `, by the number. */
export function readNumberedTests(): ReadonlyMap<number, NumberedTests> {
  const found = new Map<number, NumberedTests>();
  for (const file of ourFiles('test').filter((path) => path.endsWith('.test.ts'))) {
    for (const { numbers, differs, notApplicable } of callsIn(textOf(file))) {
      for (const number of numbers) {
        const before = found.get(number);
        found.set(number, {
          files: distinct(before?.files, [file]),
          differs: distinct(before?.differs, differs),
          notApplicable: distinct(before?.notApplicable, notApplicable),
        });
      }
    }
  }
  return found;
}

const distinct = (before: readonly string[] = [], more: readonly string[]) => [...new Set([...before, ...more])];

/** Every test of a statement in a file: `statement(target, 7, …)`, or a plain test titled `G92: …`. */
export function callsIn(text: string): readonly Call[] {
  const nodes = nodesOf(text);
  return nodes.flatMap((node): Call[] => {
    if (node.type !== 'CallExpression') return [];
    const [first, ...others] = node.arguments as SyntaxNode[];
    if (/^statement/.test(nameOf(node.callee))) {
      // A file may give its own `statement` the target.
      const [number, , , exception] = typeof first?.value === 'number' ? [first, ...others] : others;
      const literals = (expression: SyntaxNode | undefined) => meantBy(expression, nodes).filter(({ type }) => type === 'Literal');
      const reasons = (key: string) =>
        meantBy(exception, nodes)
          .filter((property) => property.type === 'Property' && nameOf(property.key) === key)
          .flatMap((property) => literals(property.value as SyntaxNode).map(({ value }) => String(value)));
      return [
        {
          numbers: literals(number).map(({ value }) => Number(value)),
          differs: reasons('differs'),
          notApplicable: reasons('notApplicable'),
        },
      ];
    }
    const title = first && /^.G(\d+): /.exec(text.slice(Number(first.start), Number(first.end)));
    return title ? [{ numbers: [Number(title[1])], differs: [], notApplicable: [] }] : [];
  });
}

/** The nodes of an expression, and of what its names are bound to in the file: by a `const`, or by the rows of a table of cases. */
function meantBy(expression: SyntaxNode | undefined, nodes: readonly SyntaxNode[], seen = new Set<string>()): readonly SyntaxNode[] {
  if (!expression) return [];
  const inside = nodes.filter(({ start, end }) => Number(start) >= Number(expression.start) && Number(end) <= Number(expression.end));
  const labels = new Set(inside.map(({ key }) => key));
  const names = inside.filter((node) => node.type === 'Identifier' && !labels.has(node)).map(nameOf);
  const bound = names.flatMap((name) => {
    if (seen.has(name)) return [];
    seen.add(name);
    return nodes.flatMap(({ type, id, init, key, value }) => {
      if (type === 'VariableDeclarator' && nameOf(id) === name) return [init as SyntaxNode];
      return type === 'Property' && nameOf(key) === name ? [value as SyntaxNode] : [];
    });
  });
  return [...inside, ...bound.flatMap((value) => meantBy(value, nodes, seen))];
}
