import { made, type Project } from './made.ts';
import { objectsOf, text, unknown, type Values } from './values.ts';

/** An answer of a Google API other than success. */
export class ApiError extends Error {}

export type Resource = { readonly type: string; readonly values: Values };

/** What a project holds. One run of the tests has one; nothing of it is kept. */
export type Cloud = {
  /** As the provider is configured. */
  readonly project: Project;
  /** Made by Terraform and not yet deleted. */
  all(type?: string): readonly Resource[];
  find(type: string, id: string): Values | undefined;
  /** Left behind by a destroy on purpose: a database that is to be abandoned, an App Engine application, an API that stays enabled. */
  abandoned(): readonly Resource[];
};

export type WritableCloud = Cloud & {
  /** @throws ApiError where there is one already, or where what it needs is not there */
  create(type: string, values: Values): void;
  /**
   * What was there before is Terraform's from then on: it was imported.
   * @throws ApiError where it is not there
   */
  update(type: string, values: Values): void;
  /**
   * Whether it is gone; else it stays by its own settings.
   * @throws ApiError where it is protected
   */
  remove(type: string, values: Values): 'deleted' | 'abandoned';
};

/** Created by a PATCH, granted, or, as a version of App Engine, put in the place of one of the same id: there may be one already. */
const mayExist = (type: string) =>
  type.endsWith('_iam_member') ||
  ['google_project_service', 'google_firestore_field', 'google_app_engine_standard_app_version'].includes(type);

/** What must be there before: type of it, and where its full name or its name stands. */
const needs: Readonly<Record<string, readonly (readonly [type: string, name: (values: Values) => string])[]>> = {
  google_pubsub_subscription: [
    ['google_pubsub_topic', ({ topic }) => text(topic)],
    ['google_pubsub_topic', ({ dead_letter_policy }) => text(objectsOf(dead_letter_policy)[0]?.dead_letter_topic)],
  ],
  google_pubsub_topic_iam_member: [['google_pubsub_topic', ({ topic }) => text(topic)]],
  google_pubsub_subscription_iam_member: [['google_pubsub_subscription', ({ subscription }) => text(subscription)]],
  google_cloud_tasks_queue_iam_member: [['google_cloud_tasks_queue', ({ name }) => text(name)]],
  google_cloud_run_v2_service_iam_member: [['google_cloudfunctions2_function', ({ name }) => text(name)]],
  google_storage_bucket_object: [['google_storage_bucket', ({ bucket }) => text(bucket)]],
  google_storage_bucket_iam_member: [['google_storage_bucket', ({ bucket }) => text(bucket)]],
  google_secret_manager_secret_version: [['google_secret_manager_secret', ({ secret }) => text(secret)]],
  google_secret_manager_secret_iam_member: [['google_secret_manager_secret', ({ secret_id }) => text(secret_id)]],
  google_service_account_iam_member: [['google_service_account', ({ service_account_id }) => text(service_account_id)]],
};

/** A full name or a short one. */
const isNamed = (id: string, name: string) => id === name || id.endsWith(`/${name}`);

/** @param existing what the project held before; Terraform may refer to it and import it */
export function createCloud(project: () => Project, existing: readonly Resource[] = []): WritableCloud {
  const resources = new Map<string, Resource>();
  const outside = new Map<string, Resource>();
  /** Of queues: a name cannot be used again for days. */
  const tombstones = new Set<string>();
  const keyOf = (type: string, values: Values) => `${type} ${text(values.id)}`;
  for (const { type, values } of existing) {
    const whole = made(type, { id: unknown, ...values }, project());
    outside.set(keyOf(type, whole), { type, values: whole });
  }
  const isThere = (type: string, name: string) =>
    [...resources.values(), ...outside.values()].some((resource) => resource.type === type && isNamed(text(resource.values.id), name));

  return {
    get project() {
      return project();
    },
    all: (type) => [...resources.values()].filter((resource) => type === undefined || resource.type === type),
    find: (type, id) => (resources.get(`${type} ${id}`) ?? outside.get(`${type} ${id}`))?.values,
    abandoned: () => [...outside.values()],
    create(type, values) {
      const key = keyOf(type, values);
      if (tombstones.has(key)) throw new ApiError(`400: a queue of the name ${text(values.id)} was deleted a short while ago`);
      if (!mayExist(type) && (resources.has(key) || outside.has(key))) throw new ApiError(`409: ${text(values.id)} already exists`);
      for (const [needed, nameIn] of needs[type] ?? []) {
        const name = nameIn(values);
        if (name !== '' && name !== '_deleted-topic_' && !isThere(needed, name)) throw new ApiError(`404: ${needed} ${name} was not found`);
      }
      outside.delete(key);
      resources.set(key, { type, values });
    },
    update(type, values) {
      const key = keyOf(type, values);
      if (!resources.has(key) && !outside.has(key)) throw new ApiError(`404: ${text(values.id)} was not found`);
      outside.delete(key);
      resources.set(key, { type, values });
    },
    remove(type, values) {
      const key = keyOf(type, values);
      const reason = protectedBy(type, values);
      if (reason) throw new ApiError(`400: ${text(values.id)} cannot be deleted: ${reason}`);
      const resource = resources.get(key) ?? outside.get(key);
      resources.delete(key);
      outside.delete(key);
      if (type === 'google_cloud_tasks_queue') tombstones.add(key);
      if (!staysBehind(type, values)) return 'deleted';
      if (resource) outside.set(key, resource);
      return 'abandoned';
    },
  };
}

function protectedBy(type: string, values: Values): string | undefined {
  if (type === 'google_memorystore_instance' && values.deletion_protection_enabled === true) return 'deletion_protection_enabled is true';
  if (type === 'google_firestore_database' && values.deletion_policy === 'DELETE' && isProtected(values))
    return 'delete_protection_state is DELETE_PROTECTION_ENABLED';
  if (type === 'google_app_engine_standard_app_version' && !staysBehind(type, values) && values.delete_service_on_destroy !== true)
    return 'it is the last version of its service';
  return undefined;
}

const isProtected = ({ delete_protection_state }: Values) => delete_protection_state === 'DELETE_PROTECTION_ENABLED';

function staysBehind(type: string, values: Values): boolean {
  if (type === 'google_app_engine_application') return true;
  if (type === 'google_project_service') return values.disable_on_destroy !== true;
  if (type === 'google_firestore_database') return values.deletion_policy === 'ABANDON';
  return type === 'google_app_engine_standard_app_version' && values.noop_on_destroy === true;
}
