import { usedIn } from './references.ts';
import { declaredIn, expressionsIn, labelledIn, localsOf, type Module, type Tree, textsIn } from './tree.ts';

export type LintRule = { readonly name: string; readonly findings: (module: Module, tree: Tree) => readonly string[] };

const snakeCase = /^[a-z][a-z0-9_]*$/;
/** What is applied by itself, and not called by another module. */
const isRoot = (module: Module, { modules }: Tree): boolean => /^(\.|examples\/[^/]+)$/.test(module.folder) || modules.length === 1;
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
/** Blocks of a file that Terraform and OpenTofu 1.7 both have. */
const knownBlocks = 'terraform provider variable output locals module resource data check moved import removed'.split(' ');
const every = (module: Module) => module.files.flatMap(({ path, configuration }) => textsIn(configuration).map((text) => ({ path, text })));

/** A version range with an end: a later major version may change what a resource means. */
const isPinned = (range: unknown): boolean => /~>|<|^=?\s*\d/.test(textOf(range));

export const lintRules: readonly LintRule[] = [
  {
    name: 'every variable is used',
    findings: (module) => {
      const { variables } = usedIn(module);
      return labelledIn(module, 'variable')
        .filter(({ name }) => !variables.has(name))
        .map(({ name, path }) => `${path}: nothing uses var.${name}`);
    },
  },
  {
    name: 'every local is used',
    findings: (module) => {
      const { locals } = usedIn(module);
      return localsOf(module)
        .filter((name) => !locals.has(name))
        .map((name) => `${module.folder}: nothing uses local.${name}`);
    },
  },
  {
    name: 'every variable has a type and a description',
    findings: (module) =>
      labelledIn(module, 'variable').flatMap(({ name, path, body }) =>
        ['type', 'description'].filter((part) => textOf(body[part]) === '').map((part) => `${path}: var.${name} has no ${part}`),
      ),
  },
  {
    name: 'every output has a description',
    findings: (module) =>
      labelledIn(module, 'output')
        .filter(({ body }) => textOf(body.description) === '')
        .map(({ name, path }) => `${path}: output ${name} has no description`),
  },
  {
    name: 'names are in snake case',
    findings: (module) =>
      [
        ...(['variable', 'output', 'module'] as const).flatMap((kind) => labelledIn(module, kind).map(({ name }) => name)),
        ...localsOf(module),
        ...declaredIn(module).map(({ name }) => name),
      ]
        .filter((name) => !snakeCase.test(name))
        .map((name) => `${module.folder}: ${name} is not in snake case`),
  },
  {
    name: 'a root says which Terraform and which provider it needs, with an end',
    findings: (module, tree) => {
      const blocks = module.files.flatMap(({ configuration }) => configuration.terraform ?? []);
      const providers = blocks.flatMap(
        ({ required_providers }) => (required_providers ?? []) as readonly Record<string, { source?: unknown; version?: unknown }>[],
      );
      const required = providers.flatMap((provider) => Object.entries(provider));
      const others = required
        .filter(([, { source }]) => source !== 'hashicorp/google')
        .map(([name]) => `${module.folder}: the provider ${name} is not hashicorp/google`);
      const loose = required
        .filter(([, { version }]) => !isPinned(version))
        .map(([name]) => `${module.folder}: the version of ${name} has no end`);
      if (!isRoot(module, tree)) return others;
      const missing = [
        ...(blocks.some(({ required_version }) => textOf(required_version) !== '') ? [] : [`${module.folder}: no required_version`]),
        ...(required.some(([name]) => name === 'google') ? [] : [`${module.folder}: hashicorp/google is not among required_providers`]),
      ];
      return [...others, ...loose, ...missing];
    },
  },
  {
    name: 'nothing needs a later Terraform or OpenTofu than 1.7',
    findings: (module) => [
      ...module.files.flatMap(({ path, configuration }) =>
        Object.keys(configuration)
          .filter((kind) => !knownBlocks.includes(kind))
          .map((kind) => `${path}: ${kind} is of a later version`),
      ),
      ...labelledIn(module, 'variable').flatMap(({ name, path, body }) => [
        ...(body.ephemeral === undefined ? [] : [`${path}: var.${name} is ephemeral, which is of a later version`]),
        ...(textsIn(body.validation).some((text) => text.replaceAll(new RegExp(`\\bvar\\.${name}\\b`, 'g'), '').includes('var.'))
          ? [`${path}: a validation of var.${name} reads another variable, which is of a later version`]
          : []),
      ]),
      ...every(module)
        .flatMap(({ path, text }) => expressionsIn(text).map((expression) => ({ path, expression })))
        .filter(({ expression }) => /\bprovider::|\btemplatestring\(/.test(expression))
        .map(({ path, expression }) => `${path}: ${expression} is of a later version`),
    ],
  },
  {
    name: 'only a root configures a provider',
    findings: (module, tree) =>
      isRoot(module, tree)
        ? []
        : labelledIn(module, 'provider').map(({ name, path }) => `${path}: provider ${name} is configured in a module`),
  },
  {
    name: 'only resources of hashicorp/google',
    findings: (module) =>
      declaredIn(module)
        .filter(({ type }) => !/^(google_|terraform_data$)/.test(type))
        .map(({ type, path }) => `${path}: ${type} is of another provider`),
  },
  {
    name: 'no one else than named accounts may call or read',
    findings: (module) =>
      every(module)
        .filter(({ text }) => /\ball(Authenticated)?Users\b/.test(text))
        .map(({ path, text }) => `${path}: ${text}`),
  },
  {
    name: 'grants add a member and take nothing from others',
    findings: (module) =>
      declaredIn(module)
        .filter(({ type }) => /_iam_(binding|policy)$/.test(type))
        .map(({ type, name, path }) => `${path}: ${type}.${name} replaces what others granted`),
  },
  {
    name: 'nobody is editor or owner of a project',
    findings: (module) =>
      every(module)
        .filter(({ text }) => /\broles\/(editor|owner|viewer)\b/.test(text))
        .map(({ path, text }) => `${path}: ${text}`),
  },
];
