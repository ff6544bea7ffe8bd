import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { grants } from '../../scripts/terraform-grants.ts';
import { readConfigurations, terraformFolder } from '../../scripts/terraform-hcl.ts';
import { grantRows, renderTerraformReadme } from '../../scripts/terraform-readme.ts';
import { renderSettings } from '../../scripts/terraform-settings.ts';
import { ourFiles, textOf } from './source.ts';

const configurations = await readConfigurations();
const readme = readFileSync(`${terraformFolder}README.md`, 'utf8');
const source = ['src/shared', 'src/shell', 'functions', 'appengine'].flatMap((folder) => ourFiles(folder).map(textOf)).join('\n');

describe('terraform/README.md', () => {
  test('has the inputs, outputs and grants that the code has; npm run readme writes them', () => {
    expect(renderTerraformReadme(readme, configurations)).toBe(readme);
  });

  test('names no folder or file that is not there', () => {
    const files = new Set(ourFiles());
    const linked = [...readme.matchAll(/\]\(([\w./-]+\.md)\)/g)].map(([, path = '']) => path.replace(/^\.\.\//, ''));
    expect(linked.filter((path) => !files.has(path))).toEqual([]);
  });

  test('cannot leave out a grant, nor give it to another than the code does', () => {
    expect(() => grantRows(configurations, grants.slice(1))).toThrow(
      'scripts/terraform-grants.ts does not say what these are for: modules/functions google_cloud_run_v2_service_iam_member.invoker',
    );
    const [first] = grants;
    if (!first) throw new Error('there is no grant');
    expect(() => grantRows(configurations, [{ ...first, member: 'allUsers' }, ...grants.slice(1)])).toThrow(
      /\.invoker is for \$\{google_service_account\.invoker\.member\}; it is described for allUsers/,
    );
    expect(() => grantRows(configurations, [...grants, { ...first, at: 'modules/topic google_pubsub_topic_iam_member.all' }])).toThrow(
      'there is no grant modules/topic google_pubsub_topic_iam_member.all',
    );
  });
});

describe('terraform/settings.json', () => {
  test('has the names and limits of the code; npm run readme writes them', () => {
    expect(readFileSync(`${terraformFolder}settings.json`, 'utf8')).toBe(renderSettings());
  });
});

describe('terraform/firestore.indexes.json', () => {
  const { fieldOverrides } = JSON.parse(readFileSync(`${terraformFolder}firestore.indexes.json`, 'utf8'));

  test('exempts every field of each collection that the code has', () => {
    const named = [...source.matchAll(/refix\}(ptk-[a-z]+)`/g)].map(([, collection]) => collection);
    const exempt = fieldOverrides.filter(({ fieldPath }: Record<string, string>) => fieldPath === '*');
    expect(exempt.map(({ collectionGroup }: Record<string, string>) => collectionGroup).sort()).toEqual([...new Set(named)].sort());
  });
});

describe('alerts on the log', () => {
  const observability = readFileSync(`${terraformFolder}modules/observability/main.tf`, 'utf8');
  const messages = [...observability.matchAll(/messages = \[(.*)\]/g)].flatMap(([, list = '']) =>
    [...list.matchAll(/"([^"]+)"/g)].map(([, message = '']) => message),
  );
  /** Written out, or of two parts as `${what} not published`. */
  const isLogged = (message: string): boolean => {
    const [, what, rest] = /^(\w+(?: letter)?) (not published)$/.exec(message) ?? [];
    return source.includes(`'${message}'`) || (what !== undefined && source.includes(`'${what}'`) && source.includes(`\${what} ${rest}`));
  };

  test('match what the deployables log, word for word', () => {
    expect(messages.length).toBeGreaterThan(10);
    expect(messages.filter((message) => !isLogged(message))).toEqual([]);
    expect(isLogged('stream stands still')).toBe(false);
  });

  test('and on metrics name the type of their resource', () => {
    const filters = [...observability.matchAll(/filter += "(.*)"$/gm)].map(([, filter = '']) => filter);
    expect(filters.length).toBeGreaterThan(5);
    expect(filters.filter((filter) => !/^\$\{(local\.in_|each\.value\.logs)/.test(filter))).toEqual([]);
  });
});
