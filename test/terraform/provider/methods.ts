import { ApiError, type WritableCloud } from './cloud.ts';
import { broken, exclusive, oneNeeded } from './constraints.ts';
import { readData } from './data.ts';
import type { Hooks } from './hooks.ts';
import { made } from './made.ts';
import { plan } from './plan.ts';
import { type Block, googleSchema, type Schema } from './schema.ts';
import { completed, fromBytes, text, toBytes, Unknown, type Value, type Values, visited } from './values.ts';
import { schemaMessage } from './wire.ts';

type Dynamic = { readonly msgpack: Uint8Array };
type Diagnostic = { readonly severity: 'ERROR'; readonly summary: string };
type Request = {
  readonly typeName: string;
  readonly config: Dynamic;
  readonly priorState: Dynamic;
  readonly proposedNewState: Dynamic;
  readonly plannedState: Dynamic;
  readonly currentState: Dynamic;
  readonly rawState: { readonly json: Uint8Array };
  readonly id: string;
};
export type Methods = Readonly<Record<string, (request: Request) => Promise<object> | object>>;

export type MethodsParts = {
  readonly cloud: WritableCloud;
  readonly configure: (config: Values) => void;
  readonly hooks: Hooks;
};

/** The methods of tfplugin5.Provider. */
export function createMethods({ cloud, configure, hooks }: MethodsParts, schema: Schema = googleSchema): Methods {
  const resource = (type: string) => blockOf(schema.resources, type);
  const dynamic = (block: Block, values: Values | null): Dynamic => ({ msgpack: toBytes(block, values) });
  return {
    GetSchema: () => ({
      provider: schemaMessage(schema.provider),
      resourceSchemas: Object.fromEntries([...schema.resources].map(([type, block]) => [type, schemaMessage(block)])),
      dataSourceSchemas: Object.fromEntries([...schema.data].map(([type, block]) => [type, schemaMessage(block)])),
    }),
    PrepareProviderConfig: ({ config }) => ({ preparedConfig: config }),
    ValidateResourceTypeConfig: ({ typeName, config }) => ({ diagnostics: refusals(typeName, resource(typeName), read(config)) }),
    ValidateDataSourceConfig: ({ typeName, config }) => ({
      diagnostics: readOnly(blockOf(schema.data, typeName), read(config)).map(refusal),
    }),
    UpgradeResourceState: ({ typeName, rawState }) => {
      const kept = JSON.parse(Buffer.from(rawState.json).toString()) as Values;
      return { upgradedState: dynamic(resource(typeName), completed(resource(typeName), kept)) };
    },
    Configure: ({ config }) => {
      configure(read(config));
      return {};
    },
    ReadResource: ({ typeName, currentState }) =>
      answered('newState', async () => {
        const values = read(currentState);
        const found = cloud.find(typeName, text(values.id));
        const isThere = found && ((await hooks[typeName]?.isThere?.(found, cloud)) ?? true);
        return dynamic(resource(typeName), isThere ? found : null);
      }),
    PlanResourceChange: ({ typeName, priorState, proposedNewState }) => {
      const proposed = fromBytes(proposedNewState.msgpack);
      if (proposed === null) return { plannedState: proposedNewState, legacyTypeSystem: true };
      const block = resource(typeName);
      const { planned, replace } = plan(typeName, block, fromBytes(priorState.msgpack), proposed);
      const requiresReplace = replace.map((name) => ({ steps: [{ attributeName: name }] }));
      return { plannedState: dynamic(block, planned), requiresReplace, legacyTypeSystem: true };
    },
    ApplyResourceChange: async ({ typeName, priorState, plannedState }) => {
      const block = resource(typeName);
      const before = fromBytes(priorState.msgpack);
      const planned = fromBytes(plannedState.msgpack);
      const answer = await answered('newState', async () => dynamic(block, await applied(typeName, before, planned, cloud, hooks)));
      // What could not be changed is as it was.
      return { newState: priorState, legacyTypeSystem: true, ...answer };
    },
    ImportResourceState: ({ typeName, id }) => {
      const found = cloud.find(typeName, id);
      if (!found) return { diagnostics: [refusal(`${typeName} ${id} was not found`)] };
      return { importedResources: [{ typeName, state: dynamic(resource(typeName), found) }] };
    },
    ReadDataSource: ({ typeName, config }) => {
      const block = blockOf(schema.data, typeName);
      return answered('state', async () => dynamic(block, readData(typeName, block, read(config), cloud)));
    },
    Stop: () => ({}),
  };
}

function blockOf(blocks: ReadonlyMap<string, Block>, type: string): Block {
  const block = blocks.get(type);
  if (!block) throw new Error(`the schema knows no ${type}`);
  return block;
}

const read = ({ msgpack }: Dynamic): Values => fromBytes(msgpack) ?? {};
const refusal = (summary: string): Diagnostic => ({ severity: 'ERROR', summary });

async function answered(field: string, make: () => Promise<Dynamic>): Promise<object> {
  try {
    return { [field]: await make() };
  } catch (error) {
    const summary = error instanceof Error ? (error instanceof ApiError ? error.message : String(error.stack)) : String(error);
    return { diagnostics: [refusal(summary)] };
  }
}

function refusals(type: string, block: Block, config: Values): readonly Diagnostic[] {
  const isSet = (name: string) => {
    const value: Value = config[name] ?? null;
    return value !== null && !(Array.isArray(value) && value.length === 0);
  };
  const tooMany = (exclusive[type] ?? []).map((group) => group.filter(isSet)).filter(({ length }) => length > 1);
  const none = (oneNeeded[type] ?? []).filter((group) => !group.some((name) => isSet(name)));
  return [
    ...readOnly(block, config),
    ...broken(type, config, block),
    ...tooMany.map((group) => `${group.join(' and ')} exclude each other`),
    ...none.map((group) => `one of ${group.join(', ')} is needed`),
  ].map((reason) => refusal(`${type}: ${reason}`));
}

const readOnly = (block: Block, config: Values): readonly string[] =>
  visited(block, config)
    .filter(({ attribute, value }) => attribute.computed && !attribute.optional && !(value instanceof Unknown))
    .map(({ path }) => `${path} is set by the service; it cannot be configured`);

/** Changes what there is; resolves to what has become of it. */
async function applied(
  type: string,
  before: Values | null,
  planned: Values | null,
  cloud: WritableCloud,
  hooks: Hooks,
): Promise<Values | null> {
  const hook = hooks[type];
  if (planned === null) {
    if (before && cloud.remove(type, before) === 'deleted') await hook?.delete?.(before, cloud);
    return null;
  }
  if (before === null) {
    const wanted = made(type, planned, cloud.project);
    cloud.create(type, wanted);
    try {
      const decided = await hook?.create?.(wanted, cloud);
      const values = decided ? made(type, planned, cloud.project, decided) : wanted;
      cloud.update(type, values);
      return values;
    } catch (error) {
      cloud.remove(type, wanted);
      throw error;
    }
  }
  const wanted = made(type, planned, cloud.project);
  const decided = await hook?.update?.(wanted, before, cloud);
  const values = decided ? made(type, planned, cloud.project, decided) : wanted;
  cloud.update(type, values);
  return values;
}
