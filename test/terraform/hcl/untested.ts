import { type Body, declaredIn, labelledIn, type Module, type Tree } from './tree.ts';

const blocks = (value: unknown): readonly Body[] => (Array.isArray(value) ? (value as readonly Body[]) : []);
const texts = (value: unknown): readonly string[] => (Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []);

/** What a run expects to fail, with the folder of the module that it plans: `var.name`, `check.name`, `type.name`. */
function expectedFailures({ tests }: Tree): readonly string[] {
  return tests.flatMap(({ configuration }) =>
    Object.values((configuration.run ?? {}) as Readonly<Record<string, unknown>>)
      .flatMap(blocks)
      .flatMap((run) => {
        const source = String(blocks(run.module)[0]?.source ?? '.');
        const folder = source.replace(/^\.\//, '');
        return texts(run.expect_failures).map((text) => `${folder} ${text.replace(/^\$\{|\}$/g, '')}`);
      }),
  );
}

/** What can refuse an input, and by how many conditions. */
function refusing(module: Module): readonly { readonly name: string; readonly path: string; readonly conditions: number }[] {
  const validated = labelledIn(module, 'variable').map(({ name, path, body }) => ({
    name: `var.${name}`,
    path,
    conditions: blocks(body.validation).length,
  }));
  const checked = module.files.flatMap(({ path, configuration }) =>
    Object.keys((configuration.check ?? {}) as Body).map((name) => ({ name: `check.${name}`, path, conditions: 1 })),
  );
  const conditioned = declaredIn(module).map(({ type, name, path, body }) => ({
    name: `${type}.${name}`,
    path,
    conditions: blocks(body.lifecycle).flatMap(({ precondition, postcondition }) => [...blocks(precondition), ...blocks(postcondition)])
      .length,
  }));
  return [...validated, ...checked, ...conditioned].filter(({ conditions }) => conditions > 0);
}

/** What has more conditions than there are runs of the tests that expect it to fail. A tree without tests is of no interest. */
export function untested(tree: Tree): readonly string[] {
  if (tree.tests.length === 0) return [];
  const failing = expectedFailures(tree);
  return tree.modules.flatMap((module) =>
    refusing(module).flatMap(({ name, path, conditions }) => {
      const runs = failing.filter((one) => one === `${module.folder} ${name}`).length;
      return runs < conditions ? [`${path}: ${name} has ${conditions} conditions; the tests expect ${runs} failures of it`] : [];
    }),
  );
}

/** Validations whose message leaves open which variable it is about. */
export const nameless = ({ modules }: Tree): readonly string[] =>
  modules.flatMap((module) =>
    labelledIn(module, 'variable').flatMap(({ name, path, body }) =>
      blocks(body.validation)
        .filter(({ error_message }) => !new RegExp(`\\b${name}\\b`).test(String(error_message)))
        .map(({ error_message }) => `${path}: a message of var.${name} does not name it: ${String(error_message)}`),
    ),
  );
