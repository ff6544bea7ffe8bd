import type { Block, NestedBlock } from './schema.ts';
import { elementsOf, isObject, objectsOf, same, Unknown, unknown, type Value, type Values } from './values.ts';

/** What replaces a resource when it changes, beside what `names` it. */
const replacing: Readonly<Record<string, readonly string[]>> = {
  google_pubsub_subscription: ['topic', 'enable_message_ordering', 'filter'],
  google_pubsub_topic: ['kms_key_name'],
  google_cloud_scheduler_job: ['region'],
  google_firestore_database: ['location_id', 'type', 'database_edition'],
  google_firestore_field: ['database', 'collection', 'field'],
  google_firestore_index: ['*'],
  google_redis_instance: ['tier', 'transit_encryption_mode', 'connect_mode', 'authorized_network', 'location_id', 'reserved_ip_range'],
  google_memorystore_instance: [
    'instance_id',
    'mode',
    'authorization_mode',
    'transit_encryption_mode',
    'desired_auto_created_endpoints',
    'zone_distribution_config',
  ],
  google_app_engine_application: ['location_id'],
  google_app_engine_standard_app_version: ['service', 'version_id', 'runtime'],
  google_storage_bucket_object: ['bucket', 'source', 'content', 'content_type', 'storage_class'],
  google_service_account: ['account_id'],
  google_project_service: ['service'],
  google_project_iam_custom_role: ['role_id'],
  google_secret_manager_secret: ['secret_id', 'replication'],
  google_secret_manager_secret_version: ['secret', 'secret_data', 'is_secret_data_base64'],
  google_network_connectivity_service_connection_policy: ['service_class', 'network'],
  google_monitoring_notification_channel: ['project'],
  google_vpc_access_connector: ['*'],
};
const naming = ['name', 'project', 'location'];

/** What the service writes for an attribute that the configuration leaves out, and that is no surprise. */
const defaults: Readonly<Record<string, Readonly<Record<string, Value>>>> = {
  google_pubsub_subscription: { message_retention_duration: '604800s' },
  google_cloud_scheduler_job: { time_zone: 'Etc/UTC', attempt_deadline: '180s' },
  google_firestore_database: { deletion_policy: 'ABANDON' },
  google_firestore_field: { database: '(default)' },
  google_firestore_index: { database: '(default)', query_scope: 'COLLECTION' },
  google_redis_instance: { tier: 'BASIC', connect_mode: 'DIRECT_PEERING', transit_encryption_mode: 'DISABLED', auth_enabled: false },
  google_memorystore_instance: { deletion_protection_enabled: true },
  google_storage_bucket: { force_destroy: false, storage_class: 'STANDARD' },
  google_secret_manager_secret_version: { enabled: true, deletion_policy: 'DELETE' },
  google_monitoring_alert_policy: { enabled: true },
};

/** Follow from others, so that a change of those changes them. */
const following: Readonly<Record<string, string>> = { effective_labels: 'labels', terraform_labels: 'labels' };

export type Plan = {
  readonly planned: Values /** Members for whose sake the resource must be made anew. */;
  readonly replace: readonly string[];
};

/**
 * What a resource will be, as far as that is known before apply.
 *
 * @param prior what it is; null where it is to be made
 * @param proposed the configuration, with what the service had filled in before
 */
export function plan(type: string, block: Block, prior: Values | null, proposed: Values): Plan {
  const filled = withUnknowns(block, prior, { ...proposed, ...missing(defaults[type] ?? {}, proposed) });
  if (!prior) return { planned: filled, replace: [] };
  const followers = Object.entries(following).filter(([name, leader]) => name in filled && !same(prior[leader], filled[leader]));
  const planned = { ...filled, ...Object.fromEntries(followers.map(([name]) => [name, unknown])) };
  const mayReplace = membersThatReplace(type, block);
  return { planned, replace: mayReplace.filter((name) => !same(prior[name], planned[name])) };
}

const missing = (values: Values, from: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([name]) => (from[name] ?? null) === null));

function membersThatReplace(type: string, block: Block): readonly string[] {
  const own = replacing[type] ?? [];
  if (!type.endsWith('_iam_member') && !own.includes('*')) return [...naming.filter((name) => isSettable(block, name)), ...own];
  return [...block.attributes.keys(), ...block.blocks.keys()].filter(
    (name) => name !== 'timeouts' && name !== 'id' && isSettable(block, name),
  );
}

const isSettable = (block: Block, name: string): boolean => {
  const attribute = block.attributes.get(name);
  return attribute ? attribute.required || attribute.optional : block.blocks.has(name);
};

/** A member that the service fills in is unknown where nothing was there before. */
function withUnknowns(block: Block, prior: Values | null, proposed: Values): Values {
  const values: Record<string, Value> = { ...proposed };
  for (const [name, { computed }] of block.attributes) {
    if (computed && (values[name] ?? null) === null && prior === null) values[name] = unknown;
  }
  for (const [name, nested] of block.blocks) {
    if (name !== 'timeouts') values[name] = nestedWithUnknowns(nested, prior?.[name], values[name]);
  }
  return values;
}

function nestedWithUnknowns({ nesting, block }: NestedBlock, prior: Value | undefined, proposed: Value | undefined): Value {
  if (proposed instanceof Unknown) return proposed;
  if (nesting === 'single') return isObject(proposed) ? withUnknowns(block, isObject(prior) ? prior : null, proposed) : null;
  const before = objectsOf(prior);
  // The elements of a set have no places: where there was any, each is taken to have been filled in.
  const priorAt = (index: number) => before[nesting === 'set' ? 0 : index] ?? null;
  return elementsOf(proposed).map((element, index) => (isObject(element) ? withUnknowns(block, priorAt(index), element) : element));
}
