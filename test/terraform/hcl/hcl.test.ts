import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { failed } from '../tiers/check.ts';
import { tierA } from '../tiers/tier-a.ts';
import { expressionsIn } from './tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'ptk-hcl-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const versions = `terraform {
  required_version = ">= 1.7.0"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 7.0"
    }
  }
}
`;

let trees = 0;
/** What tier A finds in files, as texts. */
async function findings(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const root = join(folder, String(trees++));
  for (const [path, text] of Object.entries({ 'versions.tf': versions, ...files })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return failed(await tierA(root)).flatMap((check) => check.findings);
}

const topic = (body: string) => `resource "google_pubsub_topic" "main" {\n${body}\n}\n`;
const subscription = (body: string) => `resource "google_pubsub_subscription" "main" {\n  name = "abc"\n  topic = "t"\n${body}\n}\n`;

describe('HCL that is right', () => {
  test.each([
    [
      'literals, expressions and meta arguments',
      topic(`  for_each = toset(["a"])\n  name = "ptk-\${each.key}"\n  labels = { a = 1 }\n  depends_on = []`),
    ],
    [
      'a block, and one by dynamic',
      subscription(
        '  dynamic "expiration_policy" {\n    for_each = [1]\n    content {\n      ttl = ""\n    }\n  }\n  retry_policy {\n    minimum_backoff = "10s"\n  }',
      ),
    ],
    ['a number as text', subscription('  ack_deadline_seconds = "20"')],
    ['what only another resource knows', `${topic('  name = "abc"')}${subscription('  filter = google_pubsub_topic.main.id')}`],
    ['terraform_data', 'resource "terraform_data" "main" {\n  input = 1\n}\n'],
  ])('has no finding: %s', async (_, text) => {
    expect(await findings({ 'main.tf': text })).toEqual([]);
  });
});

describe('HCL that is wrong', () => {
  test.each([
    ['a file that ends too soon', 'resource "google_pubsub_topic" "main" {\n', 'main.tf: '],
    ['an unknown type', 'resource "google_pubsub_topics" "main" {\n}\n', 'google_pubsub_topics is no resource of the schema'],
    ['an unknown data source', 'data "google_thing" "main" {\n}\n', 'google_thing is no data source of the schema'],
    ['an unknown argument', topic('  name = "abc"\n  label = {}'), 'label is no argument'],
    ['an unknown argument in a block', subscription('  retry_policy {\n    backoff = "1s"\n  }'), 'retry_policy.backoff is no argument'],
    ['a missing argument', topic('  labels = {}'), 'name is required'],
    ['a missing argument of a block', subscription('  push_config {\n  }'), 'push_config.push_endpoint is required'],
    [
      'a text where a number must be',
      subscription('  ack_deadline_seconds = "ten"'),
      'ack_deadline_seconds is "ten"; it must be of type "number"',
    ],
    ['a list where a map must be', topic('  name = "abc"\n  labels = ["a"]'), 'labels is ["a"]'],
    [
      'two blocks where one may be',
      subscription('  retry_policy {\n  }\n  retry_policy {\n  }'),
      'retry_policy is there 2 times; it must be 0 to 1',
    ],
    [
      'no block where one must be',
      'resource "google_firestore_index" "main" {\n  collection = "a"\n}\n',
      'fields is there 0 times; it must be 1 or more',
    ],
    ['a value of the service', topic('  name = "abc"\n  effective_labels = {}'), 'effective_labels is set by the service'],
    [
      'a limit in a block',
      subscription('  dead_letter_policy {\n    max_delivery_attempts = 4\n  }'),
      'max_delivery_attempts is 4; it must lie between 5 and 100',
    ],
    [
      'what excludes each other',
      subscription('  push_config {\n    push_endpoint = "https://a.b"\n  }\n  bigquery_config {\n    table = "a"\n  }'),
      'push_config and bigquery_config exclude each other',
    ],
    ['an unknown variable', topic('  name = var.name'), 'there is no var.name'],
    ['an unknown local', topic('  name = local.name'), 'there is no local.name'],
    ['an unknown resource', topic('  name = google_pubsub_topic.other.name'), 'there is no google_pubsub_topic.other'],
    [
      'an unknown attribute',
      `${topic('  name = "abc"')}${subscription('  filter = google_pubsub_topic.main.uid')}`,
      'there is no google_pubsub_topic.main.uid',
    ],
    ['an unknown module', topic('  name = module.a.name'), 'there is no module.a'],
    ['an unused variable', 'variable "a" {\n  type = string\n  description = "A."\n}\n', 'nothing uses var.a'],
    ['an unused local', 'locals {\n  a = 1\n}\n', 'nothing uses local.a'],
    ['a variable without a type', `variable "a" {\n  description = "A."\n}\n${topic('  name = var.a')}`, 'var.a has no type'],
    ['a variable without a description', `variable "a" {\n  type = string\n}\n${topic('  name = var.a')}`, 'var.a has no description'],
    ['an output without a description', 'output "a" {\n  value = 1\n}\n', 'output a has no description'],
    ['a name in another case', 'output "aName" {\n  description = "A."\n  value = 1\n}\n', 'aName is not in snake case'],
    ['another provider', 'resource "random_id" "main" {\n}\n', 'random_id is of another provider'],
    ['a grant that takes from others', 'resource "google_pubsub_topic_iam_binding" "main" {\n}\n', 'replaces what others granted'],
    [
      'a grant to everybody',
      'resource "google_project_iam_member" "main" {\n  project = "p"\n  role = "roles/run.invoker"\n  member = "allAuthenticatedUsers"\n}\n',
      'allAuthenticatedUsers',
    ],
    [
      'an owner',
      'resource "google_project_iam_member" "main" {\n  project = "p"\n  role = "roles/owner"\n  member = "user:a@b.c"\n}\n',
      'roles/owner',
    ],
    ['a block of a later version', 'ephemeral "google_service_account_key" "main" {\n}\n', 'ephemeral is of a later version'],
    [
      'a validation across variables',
      `variable "a" {\n  type = number\n  description = "A."\n  validation {\n    condition = var.a > var.b\n    error_message = "a is small."\n  }\n}\nvariable "b" {\n  type = number\n  description = "B."\n}\n`,
      'a validation of var.a reads another variable, which is of a later version',
    ],
    [
      'a variable that is kept nowhere',
      `variable "a" {\n  type = string\n  description = "A."\n  ephemeral = true\n}\n${topic('  name = var.a')}`,
      'var.a is ephemeral',
    ],
    [
      'a function of a provider',
      topic('  name = provider::google::name_from_id("a/b")'),
      'provider::google::name_from_id("a/b") is of a later version',
    ],
    [
      'an environment name of nobody',
      'output "a" {\n  description = "A."\n  value = { SINKS = "a", SINK = "b" }\n}\n',
      'no deployable reads SINKS',
    ],
  ])('has a finding: %s', async (_, text, finding) => {
    expect(await findings({ 'main.tf': text })).toContainEqual(expect.stringContaining(finding));
  });

  test('a root without versions, and with versions that have no end', async () => {
    const without = await findings({ 'versions.tf': topic('  name = "abc"') });
    expect(without).toEqual(['.: no required_version', '.: hashicorp/google is not among required_providers']);
    expect(await findings({ 'versions.tf': versions.replace('~> 7.0', '>= 7.0') })).toEqual(['.: the version of google has no end']);
    expect(await findings({ 'versions.tf': versions.replace('hashicorp/google', 'me/google') })).toContain(
      '.: the provider google is not hashicorp/google',
    );
  });

  test('a call of a module with what it does not take, without what it needs, and of what it does not give', async () => {
    const called =
      'variable "name" {\n  type = string\n  description = "A."\n}\noutput "id" {\n  description = "A."\n  value = var.name\n}\n';
    const call = (body: string, output: string) =>
      `module "a" {\n  source = "./modules/a"\n${body}\n}\noutput "a" {\n  description = "A."\n  value = module.a.${output}\n}\n`;
    const found = (main: string) => findings({ 'main.tf': main, 'modules/a/main.tf': called });
    expect(await found(call('  name = "b"', 'id'))).toEqual([]);
    expect(await found(call('  name = "b"\n  size = 1', 'id'))).toEqual(['main.tf: module.a takes no size']);
    expect(await found(call('', 'id'))).toEqual(['main.tf: module.a needs name']);
    expect(await found(call('  name = "b"', 'ids'))).toEqual(['main.tf: there is no module.a.ids']);
    expect(await found(call('  name = "b"', 'id').replace('modules/a', 'modules/b'))).toContainEqual(
      expect.stringContaining('which is no module here'),
    );
  });

  test('an input that is refused, and no test that shows it', async () => {
    const limit = (name: string) => `  validation {\n    condition = var.a > 1\n    error_message = "${name} is too small."\n  }\n`;
    const variable = (limits: string) => `variable "a" {\n  type = number\n  description = "A."\n${limits}}\n`;
    const check = 'check "c" {\n  assert {\n    condition = var.a > 2\n    error_message = "Small."\n  }\n}\n';
    const ruled =
      'resource "terraform_data" "r" {\n  lifecycle {\n    precondition {\n      condition = var.a > 3\n      error_message = "Small."\n    }\n  }\n}\n';
    const run = (name: string, ...failing: readonly string[]) => `run "${name}" {\n  expect_failures = [${failing.join(', ')}]\n}\n`;
    const found = (limits: string, runs: string) => findings({ 'main.tf': variable(limits) + check + ruled, 'tests/a.tftest.hcl': runs });
    const rest = run('rest', 'check.c', 'terraform_data.r');
    expect(await found(limit('a'), rest + run('low', 'var.a'))).toEqual([]);
    expect(await found(limit('a'), rest)).toEqual(['main.tf: var.a has 1 conditions; the tests expect 0 failures of it']);
    expect(await found(limit('a') + limit('a'), rest + run('low', 'var.a'))).toEqual([
      'main.tf: var.a has 2 conditions; the tests expect 1 failures of it',
    ]);
    expect(await found(limit('a'), run('low', 'var.a'))).toEqual([
      'main.tf: check.c has 1 conditions; the tests expect 0 failures of it',
      'main.tf: terraform_data.r has 1 conditions; the tests expect 0 failures of it',
    ]);
    expect(await found(limit('It'), rest + run('low', 'var.a'))).toEqual([
      'main.tf: a message of var.a does not name it: It is too small.',
    ]);
  });

  test('tests and example values of variables that there are not', async () => {
    const variable = `variable "a" {\n  type = string\n  description = "A."\n}\n${topic('  name = var.a')}`;
    const found = (files: Readonly<Record<string, string>>) => findings({ 'main.tf': variable, ...files });
    expect(
      await found({
        'tests/a.tftest.hcl': 'variables {\n  a = "b"\n}\nrun "c" {\n  variables {\n    a = "d"\n  }\n}\n',
        'terraform.tfvars.example': 'a = "b"\n',
      }),
    ).toEqual([]);
    expect(await found({ 'tests/a.tftest.hcl': 'run "c" {\n  variables {\n    b = "d"\n  }\n}\n' })).toEqual([
      'tests/a.tftest.hcl: there is no variable b',
    ]);
    expect(await found({ 'terraform.tfvars.example': 'b = "b"\n' })).toEqual(['terraform.tfvars.example: there is no variable b']);
  });
});

test.each([
  ['a', []],
  [`\${a}`, ['a']],
  [`x \${a.b} y \${c}`, ['a.b', 'c']],
  [`\${merge({ a = 1 }, { b = 2 })}`, ['merge({ a = 1 }, { b = 2 })']],
  [`$\${a}`, []],
])('the expressions in %s are %j', (text, expressions) => {
  expect(expressionsIn(text)).toEqual(expressions);
});
