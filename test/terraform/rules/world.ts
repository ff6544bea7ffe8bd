/** A resource as `terraform show -json` has it after apply: every value is known, blocks are lists. */
export type Applied = { readonly address: string; readonly type: string; readonly values: Fields };
export type Fields = Readonly<Record<string, unknown>>;

/** Everything that was applied. */
export type World = {
  all(type: string): readonly Applied[];
  /** The one of that full name; short names are understood. */
  named(type: string, name: string): Applied | undefined;
};

type ShownModule = {
  readonly resources?: readonly { readonly mode: string; readonly address: string; readonly type: string; readonly values?: Fields }[];
  readonly child_modules?: readonly ShownModule[];
};
/** As far as it is read: a state has `values`, a plan `planned_values`. */
export type Shown = {
  readonly values?: { readonly root_module?: ShownModule };
  readonly planned_values?: { readonly root_module?: ShownModule };
};

export const worldOf = (shown: Shown): World => createWorld(resourcesOf((shown.values ?? shown.planned_values)?.root_module));

export function createWorld(resources: readonly Applied[]): World {
  const all = (type: string) => resources.filter((resource) => resource.type === type);
  return { all, named: (type, name) => all(type).find(({ values }) => isSame(textOf(values.id), name)) };
}

const resourcesOf = ({ resources = [], child_modules = [] }: ShownModule = {}): readonly Applied[] => [
  ...resources.filter(({ mode }) => mode === 'managed').map(({ address, type, values = {} }) => ({ address, type, values })),
  ...child_modules.flatMap(resourcesOf),
];

/** Whether two names, full or short, are of one resource. */
export const isSame = (one: string, other: string): boolean => one === other || one.endsWith(`/${other}`) || other.endsWith(`/${one}`);

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The first block of a name. */
export const blockOf = (fields: Fields | undefined, name: string): Fields | undefined => {
  const blocks = fields?.[name];
  return Array.isArray(blocks) ? (blocks[0] as Fields | undefined) : undefined;
};

export const secondsOf = (duration: unknown): number | undefined =>
  typeof duration === 'string' && /^[\d.]+s$/.test(duration) ? Number(duration.slice(0, -1)) : undefined;

/** A rule that holds in every deployment; each finding names the resource and what to change. */
export type Rule = { readonly name: string; readonly findings: (world: World) => readonly string[] };
