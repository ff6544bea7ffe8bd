import { createHash } from 'node:crypto';
import { isObject, objectsOf, text, Unknown, type Value, type Values } from './values.ts';

export type Project = { readonly id: string; readonly number: string; readonly region: string };

const hash = (...parts: readonly Value[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('hex');
/** A number as Google gives out, always the same for the same resource. */
const serial = (...parts: readonly Value[]): string => String(1n + (BigInt(`0x${hash(...parts).slice(0, 16)}`) % 10n ** 18n));

type Made = (values: Values, project: Project) => Values;

const named =
  (template: string, more: Made = () => ({})): Made =>
  (values, project) => {
    const id = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => text(values[name]));
    return { id, ...more({ ...values, id }, project) };
  };
const alsoName = ({ id }: Values): Values => ({ name: id ?? null });

const emailOf = ({ account_id, project }: Values): string => `${text(account_id)}@${text(project)}.iam.gserviceaccount.com`;
/** Functions and services have such names. */
const host = (values: Values, { number }: Project): string => `${text(values.name)}-${number}.${text(values.location)}.run.app`;
const certificate = '-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----';
const endpoint = (values: Values) => ({
  ip_address: '10.128.0.12',
  port: 6379,
  connection_type: 'CONNECTION_TYPE_PRIMARY',
  network: objectsOf(values.desired_auto_created_endpoints)[0]?.network ?? null,
  project_id: values.project ?? null,
});

/** What the service decides about each type: its full name above all. */
const byType: Readonly<Record<string, Made>> = {
  google_pubsub_topic: named('projects/{project}/topics/{name}'),
  google_pubsub_subscription: named('projects/{project}/subscriptions/{name}', () => ({ ack_deadline_seconds: 10 })),
  google_pubsub_schema: named('projects/{project}/schemas/{name}'),
  google_cloud_tasks_queue: named('projects/{project}/locations/{location}/queues/{name}', () => ({
    rate_limits: [{ max_burst_size: 100, max_dispatches_per_second: 500, max_concurrent_dispatches: 1000 }],
    retry_config: [{ max_attempts: 100, min_backoff: '0.100s', max_backoff: '3600s', max_doublings: 16 }],
  })),
  google_cloud_scheduler_job: named('projects/{project}/locations/{region}/jobs/{name}', () => ({ state: 'ENABLED', paused: false })),
  google_firestore_database: named('projects/{project}/databases/{name}', (values) => ({ uid: hash(values.id ?? null).slice(0, 32) })),
  google_firestore_field: named('projects/{project}/databases/{database}/collectionGroups/{collection}/fields/{field}', (values) => ({
    ...alsoName(values),
    ttl_config: [{ state: 'ACTIVE' }],
  })),
  google_firestore_index: (values) => {
    const { project, database, collection, fields } = values;
    const index = hash(fields ?? null, values.query_scope ?? null).slice(0, 12);
    const id = `projects/${text(project)}/databases/${text(database)}/collectionGroups/${text(collection)}/indexes/${index}`;
    return { id, name: id };
  },
  google_redis_instance: named('projects/{project}/locations/{region}/instances/{name}', (values) => ({
    host: '10.128.0.11',
    port: values.transit_encryption_mode === 'SERVER_AUTHENTICATION' ? 6378 : 6379,
    auth_string: values.auth_enabled === true ? hash(values.id ?? null).slice(0, 36) : '',
    server_ca_certs: values.transit_encryption_mode === 'SERVER_AUTHENTICATION' ? [{ cert: certificate, serial_number: '0' }] : [],
    redis_version: 'REDIS_7_2',
    current_location_id: `${text(values.region)}-b`,
  })),
  google_memorystore_instance: named('projects/{project}/locations/{location}/instances/{instance_id}', (values) => ({
    ...alsoName(values),
    state: 'ACTIVE',
    endpoints: [{ connections: [{ psc_auto_connection: [endpoint(values)] }] }],
    managed_server_ca: [{ ca_certs: [{ certificates: [certificate] }] }],
  })),
  google_cloudfunctions2_function: named('projects/{project}/locations/{location}/functions/{name}', (values, project) => ({
    state: 'ACTIVE',
    environment: 'GEN_2',
    url: `https://${text(values.location)}-${text(values.project)}.cloudfunctions.net/${text(values.name)}`,
    service_config: [
      {
        uri: `https://${host(values, project)}`,
        gcf_uri: `https://${host(values, project)}`,
        service: `projects/${text(values.project)}/locations/${text(values.location)}/services/${text(values.name)}`,
        available_memory: '256M',
        available_cpu: '0.1666',
        timeout_seconds: 60,
        max_instance_count: 100,
        max_instance_request_concurrency: 1,
        service_account_email: `${project.number}-compute@developer.gserviceaccount.com`,
      },
    ],
  })),
  google_app_engine_application: named('{project}', (values) => ({
    app_id: values.project ?? null,
    name: `apps/${text(values.project)}`,
    default_hostname: `${text(values.project)}.appspot.com`,
    default_bucket: `${text(values.project)}.appspot.com`,
    code_bucket: `staging.${text(values.project)}.appspot.com`,
    gcr_domain: 'eu.gcr.io',
    serving_status: 'SERVING',
    auth_domain: 'gmail.com',
    database_type: 'CLOUD_FIRESTORE',
  })),
  google_app_engine_standard_app_version: named('apps/{project}/services/{service}/versions/{version_id}', alsoName),
  google_storage_bucket: named('{name}', (values) => ({
    url: `gs://${text(values.name)}`,
    self_link: `https://www.googleapis.com/storage/v1/b/${text(values.name)}`,
    uniform_bucket_level_access: false,
    public_access_prevention: 'inherited',
  })),
  google_storage_bucket_object: named('{bucket}-{name}', (values) => ({
    output_name: values.name ?? null,
    generation: 1_700_000_000_000_000,
    self_link: `https://www.googleapis.com/storage/v1/b/${text(values.bucket)}/o/${encodeURIComponent(text(values.name))}`,
    media_link: `https://storage.googleapis.com/download/storage/v1/b/${text(values.bucket)}/o/${encodeURIComponent(text(values.name))}`,
  })),
  google_service_account: (values) => {
    const email = emailOf(values);
    const id = `projects/${text(values.project)}/serviceAccounts/${email}`;
    return { id, name: id, email, member: `serviceAccount:${email}`, unique_id: serial(email) };
  },
  google_project_service: named('{project}/{service}'),
  google_project_iam_custom_role: named('projects/{project}/roles/{role_id}', alsoName),
  google_secret_manager_secret: named('projects/{project}/secrets/{secret_id}', alsoName),
  google_secret_manager_secret_version: named('{secret}/versions/1', (values) => ({ name: values.id ?? null, version: '1' })),
  google_artifact_registry_repository: named('projects/{project}/locations/{location}/repositories/{repository_id}', alsoName),
  google_vpc_access_connector: named('projects/{project}/locations/{region}/connectors/{name}', ({ id }) => ({ self_link: id ?? null })),
  google_compute_network: named('projects/{project}/global/networks/{name}', ({ id }) => ({ self_link: id ?? null })),
  google_compute_subnetwork: named('projects/{project}/regions/{region}/subnetworks/{name}', ({ id }) => ({ self_link: id ?? null })),
  google_network_connectivity_service_connection_policy: named('projects/{project}/locations/{location}/serviceConnectionPolicies/{name}'),
  google_monitoring_alert_policy: (values) => numbered('alertPolicies', values, values.display_name),
  google_monitoring_notification_channel: (values) => numbered('notificationChannels', values, values.display_name, values.labels),
  google_monitoring_dashboard: (values) => ({ id: `projects/${text(values.project)}/dashboards/${serial(values.dashboard_json ?? null)}` }),
};

function numbered(collection: string, values: Values, ...told: readonly (Value | undefined)[]): Values {
  const id = `projects/${text(values.project)}/${collection}/${serial(...told.map((part) => part ?? null))}`;
  return { id, name: id };
}

/** The members that name what a grant is about. */
const grantedOn = ['topic', 'subscription', 'service_account_id', 'bucket', 'secret_id', 'repository', 'location', 'name', 'project'];

const grant = (type: string, values: Values): Values => ({
  id: [
    type.replace(/^google_|_iam_member$/g, ''),
    ...grantedOn.map((name) => text(values[name])),
    text(values.role),
    text(values.member),
    text(objectsOf(values.condition)[0]?.title),
  ]
    .filter(Boolean)
    .join('/'),
  etag: 'BwYAAAAAAAA=',
});

/**
 * A resource as it stands after apply: nothing is unknown any more.
 *
 * @param decided what a hook says of it, before anything of ours
 */
export function made(type: string, planned: Values, project: Project, decided: Values = {}): Values {
  const located: Values = { project: project.id, region: project.region, location: project.region };
  const known = filled(planned, located);
  const byService = type.endsWith('_iam_member') ? grant(type, known) : (byType[type] ?? named(`${type}/{name}`))(known, project);
  const labels = isObject(known.labels) ? known.labels : {};
  const terraform: Values = { terraform_labels: labels, effective_labels: { ...labels, 'goog-terraform-provisioned': 'true' } };
  const times: Values = { create_time: '2026-01-01T00:00:00Z', update_time: '2026-01-01T00:00:00Z' };
  return resolved(filled(filled(known, decided), { ...terraform, ...times, ...byService }));
}

/** Puts what is given in the place of what is unknown, in nested blocks too. */
function filled(values: Values, given: Values): Values {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, filledValue(value, given[name])]));
}

function filledValue(value: Value, given: Value | undefined): Value {
  if (given === undefined) return value;
  if (value instanceof Unknown) return given;
  if (isObject(value) && isObject(given)) return filled(value, given);
  if (!Array.isArray(value) || !Array.isArray(given)) return value;
  return value.map((element: Value, index) => filledValue(element, given[index]));
}

/** Nobody decides what is still unknown: it is null. */
function resolved<T extends Value>(value: T): T {
  if (value instanceof Unknown) return null as T;
  if (Array.isArray(value)) return value.map(resolved) as unknown as T;
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, resolved(inner)])) as T;
  return value;
}
