import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Grant, grants } from './terraform-grants.ts';
import { type Body, type Configuration, readConfigurations, resourcesOf, terraformFolder } from './terraform-hcl.ts';
import { renderSettings } from './terraform-settings.ts';

type Configurations = ReadonlyMap<string, Configuration>;

const code = (text: string): string => (text === '' ? '' : `\`${text}\``);
const row = (...cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
const ofRoot = (configurations: Configurations, block: 'variable' | 'output') =>
  [...configurations]
    .filter(([file]) => !file.includes('/'))
    .flatMap(([, configuration]) => Object.entries(configuration[block] ?? {}).flatMap(([name, [body]]) => (body ? [{ name, body }] : [])));

/** Every variable of the root, and below an object its attributes. */
function inputs(configurations: Configurations): readonly string[] {
  return ofRoot(configurations, 'variable').flatMap(({ name, body }) => {
    const type = String(body.type).replace(/^\$\{|\}$/g, '');
    const isObject = type.startsWith('object(');
    const needed = 'default' in body ? code(JSON.stringify(body.default)) : 'required';
    const attributes = [...type.matchAll(/^\s*(\w+)\s*= optional\((\w+(?:\(\w+\))?)(?:, (.*))?\)$/gm)];
    return [
      row(code(name), isObject ? 'object' : code(type), isObject ? '' : needed, String(body.description)),
      ...attributes.map(([, attribute = '', of = '', value = 'null']) => row(`\`${name}.${attribute}\``, code(of), code(value), '')),
    ];
  });
}

const outputs = (configurations: Configurations): readonly string[] =>
  ofRoot(configurations, 'output').map(({ name, body }) => row(code(name), String(body.description)));

/** What a grant is on, by the type of its resource. */
const kinds: Readonly<Record<string, string>> = {
  google_artifact_registry_repository_iam_member: 'repository',
  google_cloud_run_v2_service_iam_member: 'Cloud Run service',
  google_cloud_tasks_queue_iam_member: 'queue',
  google_project_iam_member: 'project',
  google_pubsub_subscription_iam_member: 'subscription',
  google_pubsub_topic_iam_member: 'topic',
  google_secret_manager_secret_iam_member: 'secrets',
  google_service_account_iam_member: 'account',
  google_storage_bucket_iam_member: 'bucket',
};

/**
 * One row for each grant of the code.
 * @throws Error that names a grant which only one of the two has, or whose member is another one there
 */
export function grantRows(configurations: Configurations, described: readonly Grant[] = grants): readonly string[] {
  const found = new Map(
    resourcesOf(configurations, /_iam_(member|binding|policy)$/).map((grant) => [`${grant.folder} ${grant.type}.${grant.name}`, grant]),
  );
  const unknown = [...found.keys()].filter((at) => !described.some((grant) => grant.at === at));
  if (unknown.length > 0) throw new Error(`scripts/terraform-grants.ts does not say what these are for: ${unknown.join(', ')}`);
  return described.map(({ at, member, who, which, why }) => {
    const grant = found.get(at);
    const [, type = ''] = /^\S+ (\w+)\./.exec(at) ?? [];
    if (!grant) throw new Error(`there is no grant ${at}`);
    if (grant.body.member !== member) throw new Error(`${at} is for ${String(grant.body.member)}; it is described for ${member}`);
    return row(who, code(roleOf(grant.body, at)), [kinds[type], which].filter(Boolean).join(' '), why);
  });
}

function roleOf({ role }: Body, at: string): string {
  if (typeof role !== 'string' || !role.startsWith('roles/')) throw new Error(`${at} has no literal role`);
  return role;
}

/** `terraform/README.md` with its tables as the code has them. */
export function renderTerraformReadme(text: string, configurations: Configurations): string {
  const tables = { inputs: inputs(configurations), outputs: outputs(configurations), grants: grantRows(configurations) };
  return Object.entries(tables).reduce((whole, [name, rows]) => {
    const marked = new RegExp(`(<!-- ${name} -->\n\\|.*\n\\|.*\n)(?:\\|.*\n)*(?=<!-- end -->)`);
    if (!marked.test(whole)) throw new Error(`terraform/README.md has no table between <!-- ${name} --> and <!-- end -->`);
    return whole.replace(marked, (_, head) => `${head}${rows.join('\n')}\n`);
  }, text);
}

/** Writes what is made of the code below `terraform/`. */
export async function writeTerraform(): Promise<void> {
  const readme = `${terraformFolder}README.md`;
  writeFileSync(`${terraformFolder}settings.json`, renderSettings());
  writeFileSync(readme, renderTerraformReadme(readFileSync(readme, 'utf8'), await readConfigurations()));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeTerraform();
