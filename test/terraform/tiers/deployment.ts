import { join } from 'node:path';
import type { Case } from '../cases.ts';
import type { Provider } from '../provider/server.ts';
import type { Shown } from '../rules/world.ts';
import { type Outcome, type Terraform, terraformIn } from '../terraform.ts';

/** One root module on one provider. Each step resolves to what went wrong, as Terraform says it. */
export type Deployment = {
  readonly terraform: Terraform;
  init(): Promise<readonly string[]>;
  validate(): Promise<readonly string[]>;
  plan(): Promise<readonly string[]>;
  apply(): Promise<readonly string[]>;
  /** What was applied. */
  state(): Promise<Shown & { readonly outputs: Readonly<Record<string, unknown>> }>;
  /** What another plan would change; nothing where the configuration says what there is. */
  changes(): Promise<readonly string[]>;
  destroy(): Promise<readonly string[]>;
  /** What is still in the state or in the project. */
  leftovers(): Promise<readonly string[]>;
};

/** Of every argument, so that no terminal decides what is printed. */
const plain = ['-no-color', '-input=false'] as const;

export function deploymentOf(binary: string, root: string, { folder, variables }: Case, provider: Provider): Deployment {
  // Variables of the environment need no quoting, and one that the root does not know is ignored.
  const given = Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [`TF_VAR_${name}`, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
  const terraform = terraformIn(binary, join(root, folder), { ...provider.env, ...given });
  const step = async (...args: readonly string[]) => refusal(await terraform.run(...args));
  return {
    terraform,
    init: () => step('init', ...plain),
    validate: () => step('validate', '-no-color'),
    plan: () => step('plan', ...plain),
    apply: () => step('apply', '-auto-approve', ...plain),
    async state() {
      const { stdout } = await terraform.run('show', '-json');
      const shown = JSON.parse(stdout);
      const outputs = Object.entries((shown.values?.outputs ?? {}) as Record<string, { value: unknown }>).map(([name, { value }]) => [
        name,
        value,
      ]);
      return { ...shown, outputs: Object.fromEntries(outputs) };
    },
    async changes() {
      const planned = await terraform.run('plan', '-out=second.tfplan', ...plain);
      if (planned.code !== 0) return refusal(planned);
      const { stdout } = await terraform.run('show', '-json', 'second.tfplan');
      const plan = JSON.parse(stdout) as PlanJson;
      const resources = (plan.resource_changes ?? []).filter(
        ({ change }) => !change.actions.every((action) => action === 'no-op' || action === 'read'),
      );
      const outputs = Object.entries(plan.output_changes ?? {}).filter(([, { actions }]) => actions.some((action) => action !== 'no-op'));
      return [
        ...resources.map(({ address, change }) => `${address}: ${change.actions.join(' and ')}`),
        ...outputs.map(([name]) => `output ${name} changes`),
      ];
    },
    destroy: () => step('destroy', '-auto-approve', ...plain),
    async leftovers() {
      const { stdout } = await terraform.run('state', 'list');
      const inState = stdout.split('\n').filter((line) => line !== '' && !line.includes('data.'));
      return [
        ...inState.map((address) => `${address} is in the state`),
        ...provider.cloud.all().map(({ type, values }) => `${type} ${String(values.id)} is there`),
      ];
    },
  };
}

type PlanJson = {
  readonly resource_changes?: readonly { readonly address: string; readonly change: { readonly actions: readonly string[] } }[];
  readonly output_changes?: Readonly<Record<string, { readonly actions: readonly string[] }>>;
};

/** The errors of a run that failed, one for each. */
function refusal({ code, stdout, stderr }: Outcome): readonly string[] {
  if (code === 0) return [];
  const errors = stderr
    .replaceAll(/^[│╷╵] ?/gm, '')
    .split(/^(?=Error: )/m)
    .map((part) => part.trim())
    .filter((part) => part.startsWith('Error: '));
  return errors.length > 0 ? errors : [(stderr || stdout).trim().slice(-2_000)];
}
