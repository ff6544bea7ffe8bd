import { type Deployable, deployedIn } from './deployables.ts';
import { type Fields, type Rule, textOf, type World } from './world.ts';

/** The content of a `firestore.indexes.json`, as far as Terraform deploys it. */
export type Definitions = {
  readonly indexes: readonly {
    readonly collectionGroup: string;
    readonly fields: readonly { readonly fieldPath: string; readonly order: string }[];
  }[];
  readonly fieldOverrides: readonly { readonly collectionGroup: string; readonly fieldPath: string; readonly ttl?: boolean }[];
};

const signature = (collection: string, fields: readonly (readonly [path: string, order: string])[]): string =>
  `${collection}: ${fields.map(([path, order]) => `${path} ${order}`).join(', ')}`;

/** Where each deployable writes records that Firestore itself is to remove. */
const endingCollections: Readonly<Record<Deployable, readonly string[]>> = {
  dedup: ['ptk-dedup'],
  fifo: ['ptk-dedup', 'ptk-outbox'],
  delay: ['ptk-delays', 'ptk-payloads', 'ptk-lateness'],
  appengine: ['ptk-delays', 'ptk-payloads', 'ptk-lateness'],
};

/** What a `firestore.indexes.json` lacks, whatever of it a deployment takes. */
export const endlessIn = ({ fieldOverrides }: Definitions): readonly string[] =>
  [...new Set(Object.values(endingCollections).flat())]
    .filter((collection) => !fieldOverrides.some(({ collectionGroup, ttl }) => collectionGroup === collection && ttl))
    .map((collection) => `no field of ${collection} has a TTL`);

/** Collections that only the fifo function and publishers with numbers query. */
const needIndexes = (world: World): boolean => deployedIn(world).some(({ kind }) => kind === 'fifo');

/** Rules about the indexes of a database that this deployment makes; `definitions` says which the queries need. */
export const indexRules = (definitions: Definitions): readonly Rule[] => [
  {
    name: 'the composite indexes are those that the queries need',
    findings: (world) => {
      if (world.all('google_firestore_database').length === 0 || !needIndexes(world)) return [];
      const prefix = deployedIn(world)[0]?.environment.COLLECTION_PREFIX ?? '';
      const needed = definitions.indexes.map(({ collectionGroup, fields }) =>
        signature(
          prefix + collectionGroup,
          fields.map(({ fieldPath, order }) => [fieldPath, order]),
        ),
      );
      const deployed = world.all('google_firestore_index').map(({ values }) => {
        const fields = ((values.fields ?? []) as readonly Fields[]).filter(({ field_path }) => field_path !== '__name__');
        return signature(
          textOf(values.collection),
          fields.map(({ field_path, order }) => [textOf(field_path), textOf(order)]),
        );
      });
      return [
        ...needed.filter((index) => !deployed.includes(index)).map((index) => `no google_firestore_index for ${index}`),
        ...deployed.filter((index) => !needed.includes(index)).map((index) => `no query needs the google_firestore_index for ${index}`),
      ];
    },
  },
  {
    name: 'every collection whose records end has a TTL policy',
    findings: (world) => {
      if (world.all('google_firestore_database').length === 0) return [];
      const ending = world
        .all('google_firestore_field')
        .filter(({ values }) => Array.isArray(values.ttl_config) && values.ttl_config.length > 0);
      const collections = deployedIn(world).flatMap(({ kind, environment }) =>
        endingCollections[kind].map((collection) => `${environment.COLLECTION_PREFIX ?? ''}${collection}`),
      );
      return [...new Set(collections)]
        .filter((collection) => !ending.some(({ values }) => values.collection === collection))
        .map((collection) => `no google_firestore_field with ttl_config for ${collection}`);
    },
  },
];
