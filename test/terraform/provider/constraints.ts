import { type Constraint, each, either, json, like, numberFrom, oneOf, secondsFrom, takenFrom } from './forms.ts';
import { type Block, googleSchema } from './schema.ts';
import { text, type Values, visited } from './values.ts';

const anySeconds = secondsFrom(0, Number.POSITIVE_INFINITY);
const day = 86_400;
const pubsubName = like(
  /^(?!goog)[A-Za-z][\w.~+%-]{2,254}$/,
  'of 3 to 255 letters, digits and -._~+%, begin with a letter and not with goog',
);
const topicId = takenFrom(/^projects\/[^/]+\/topics\/[^/]+$/, 'a full name, projects/PROJECT/topics/NAME');
const accountEmail = takenFrom(/^[^@\s]+@[^@\s]+\.[^@\s]+$/, 'an e-mail address');
const resourceName = like(
  /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/,
  'of up to 63 lower-case letters, digits and hyphens, beginning with a letter',
);
const secretName = like(/^[\w-]{1,255}$/, 'of up to 255 letters, digits, hyphens and underscores');
const networkId = like(/^(projects\/[^/]+\/global\/networks\/)?[a-z][a-z0-9-]*$/, 'a network name or its full id');
export const iamMember = like(
  /^(allUsers|allAuthenticatedUsers|(user|serviceAccount|group):[^@:\s]+@[^@:\s]+\.[^@:\s]+|domain:[^@:\s]+\.[^@:\s]+|(principal|principalSet):\/\/\S+|(projectOwner|projectEditor|projectViewer):\S+)$/,
  'of the form user:E-MAIL, serviceAccount:E-MAIL, group:E-MAIL or domain:NAME',
);
const iamRole = like(
  /^(roles\/[A-Za-z]\w*(\.\w+)*|(projects|organizations)\/[^/]+\/roles\/[\w.]+)$/,
  'roles/NAME or the full name of a custom role',
);
const timeouts = like(/^(\d+(h|m|s))+$/, 'a duration of Terraform, as 60m');
const oidc = (block: string): Readonly<Record<string, Constraint>> => ({ [`${block}.oidc_token.service_account_email`]: accountEmail });

/** Limits of Google's APIs by type and path, which the real provider leaves to the API in part: here each fails before apply. */
export const constraints: Readonly<Record<string, Readonly<Record<string, Constraint>>>> = {
  google_pubsub_topic: {
    name: pubsubName,
    message_retention_duration: secondsFrom(600, 31 * day),
  },
  google_pubsub_subscription: {
    name: pubsubName,
    ack_deadline_seconds: numberFrom(10, 600),
    message_retention_duration: secondsFrom(600, 31 * day),
    'expiration_policy.ttl': either(secondsFrom(day, Number.POSITIVE_INFINITY), ''),
    'dead_letter_policy.dead_letter_topic': topicId,
    'dead_letter_policy.max_delivery_attempts': numberFrom(5, 100),
    'retry_policy.minimum_backoff': secondsFrom(0, 600),
    'retry_policy.maximum_backoff': secondsFrom(0, 600),
    filter: (value) => (Buffer.byteLength(text(value)) > 256 ? 'has more than 256 bytes' : undefined),
    'push_config.push_endpoint': takenFrom(/^https?:\/\/\S+$/, 'a URL'),
    ...oidc('push_config'),
  },
  google_cloud_tasks_queue: {
    name: like(/^[A-Za-z0-9-]{1,100}$/, 'of up to 100 letters, digits and hyphens'),
    'rate_limits.max_dispatches_per_second': numberFrom(0, 500),
    'rate_limits.max_concurrent_dispatches': numberFrom(0, 5_000),
    'retry_config.max_attempts': numberFrom(-1, 2 ** 31 - 1),
    'retry_config.max_retry_duration': anySeconds,
    'retry_config.min_backoff': anySeconds,
    'retry_config.max_backoff': anySeconds,
    'retry_config.max_doublings': numberFrom(0, 2 ** 31 - 1),
    'stackdriver_logging_config.sampling_ratio': numberFrom(0, 1),
  },
  google_cloud_scheduler_job: {
    name: like(/^[\w-]{1,500}$/, 'of up to 500 letters, digits, hyphens and underscores'),
    schedule: like(/^(\S+ +){4}\S+$|^every /, 'five fields of cron'),
    attempt_deadline: secondsFrom(15, 1_800),
    'retry_config.retry_count': numberFrom(0, 5),
    'http_target.http_method': oneOf('POST', 'GET', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'),
    'http_target.uri': takenFrom(/^https?:\/\/\S+$/, 'a URL'),
    ...oidc('http_target'),
  },
  google_firestore_database: {
    name: either(like(/^[a-z][a-z0-9-]{2,61}[a-z0-9]$/, '(default), or of 4 to 63 lower-case letters, digits and hyphens'), '(default)'),
    type: oneOf('FIRESTORE_NATIVE', 'DATASTORE_MODE'),
    deletion_policy: oneOf('ABANDON', 'DELETE'),
    delete_protection_state: oneOf('DELETE_PROTECTION_ENABLED', 'DELETE_PROTECTION_DISABLED'),
    concurrency_mode: oneOf('OPTIMISTIC', 'PESSIMISTIC', 'OPTIMISTIC_WITH_ENTITY_GROUPS'),
    point_in_time_recovery_enablement: oneOf('POINT_IN_TIME_RECOVERY_ENABLED', 'POINT_IN_TIME_RECOVERY_DISABLED'),
    database_edition: oneOf('STANDARD', 'ENTERPRISE'),
  },
  google_firestore_index: {
    query_scope: oneOf('COLLECTION', 'COLLECTION_GROUP', 'COLLECTION_RECURSIVE'),
    'fields.order': oneOf('ASCENDING', 'DESCENDING'),
    'fields.array_config': oneOf('CONTAINS'),
  },
  google_firestore_field: {
    'index_config.indexes.order': oneOf('ASCENDING', 'DESCENDING'),
    'index_config.indexes.query_scope': oneOf('COLLECTION', 'COLLECTION_GROUP'),
  },
  google_redis_instance: {
    name: like(/^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/, 'of up to 40 lower-case letters, digits and hyphens'),
    memory_size_gb: numberFrom(1, 300),
    tier: oneOf('BASIC', 'STANDARD_HA'),
    connect_mode: oneOf('DIRECT_PEERING', 'PRIVATE_SERVICE_ACCESS'),
    transit_encryption_mode: oneOf('SERVER_AUTHENTICATION', 'DISABLED'),
    redis_version: like(/^REDIS_\d+_[\dX]+$/, 'a version as REDIS_7_2'),
    authorized_network: networkId,
  },
  google_memorystore_instance: {
    instance_id: like(/^[a-z][a-z0-9-]{2,61}[a-z0-9]$/, 'of 4 to 63 lower-case letters, digits and hyphens'),
    mode: oneOf('CLUSTER', 'CLUSTER_DISABLED'),
    authorization_mode: oneOf('IAM_AUTH', 'AUTH_DISABLED'),
    transit_encryption_mode: oneOf('SERVER_AUTHENTICATION', 'TRANSIT_ENCRYPTION_DISABLED'),
    node_type: oneOf('SHARED_CORE_NANO', 'STANDARD_SMALL', 'HIGHMEM_MEDIUM', 'HIGHMEM_XLARGE'),
    engine_version: like(/^VALKEY_\d+_\d+$/, 'a version as VALKEY_8_0'),
    replica_count: numberFrom(0, 5),
  },
  google_cloudfunctions2_function: {
    name: resourceName,
    'build_config.runtime': like(/^(nodejs(22|24)|python3\d+|go1\d+|java\d+)$/, 'a runtime that takes new functions, as nodejs24'),
    'build_config.service_account': takenFrom(
      /^projects\/[^/]+\/serviceAccounts\/[^/]+$/,
      'a full id, projects/PROJECT/serviceAccounts/E-MAIL',
    ),
    'service_config.available_memory': like(/^\d+(M|Mi|G|Gi|k)?$/, 'a size, as 256M'),
    'service_config.timeout_seconds': numberFrom(1, 3_600),
    'service_config.max_instance_request_concurrency': numberFrom(1, 1_000),
    'service_config.min_instance_count': numberFrom(0, 1_000),
    'service_config.max_instance_count': numberFrom(1, 1_000),
    'service_config.service_account_email': accountEmail,
    'service_config.ingress_settings': oneOf('ALLOW_ALL', 'ALLOW_INTERNAL_ONLY', 'ALLOW_INTERNAL_AND_GCLB'),
    'service_config.vpc_connector_egress_settings': oneOf(
      'PRIVATE_RANGES_ONLY',
      'ALL_TRAFFIC',
      'VPC_CONNECTOR_EGRESS_SETTINGS_UNSPECIFIED',
    ),
    'event_trigger.retry_policy': oneOf('RETRY_POLICY_UNSPECIFIED', 'RETRY_POLICY_DO_NOT_RETRY', 'RETRY_POLICY_RETRY'),
  },
  google_app_engine_application: {
    database_type: oneOf('CLOUD_FIRESTORE', 'CLOUD_DATASTORE_COMPATIBILITY'),
    location_id: like(
      /^(?!europe-west1$|us-central1$)[a-z]+-[a-z]+\d*$/,
      'a region of App Engine, which calls two of them europe-west and us-central',
    ),
  },
  google_app_engine_standard_app_version: {
    service: resourceName,
    version_id: like(/^(?!default$|latest$|ah-)[a-z0-9][a-z0-9-]{0,62}$/, 'of lower-case letters, digits and hyphens'),
    runtime: like(/^(nodejs(22|24)|python3\d+|go1\d+|java\d+)$/, 'a runtime that takes new versions, as nodejs24'),
    instance_class: oneOf('F1', 'F2', 'F4', 'F4_1G', 'B1', 'B2', 'B4', 'B4_1G', 'B8'),
    inbound_services: each(
      oneOf(
        ...['MAIL', 'MAIL_BOUNCE', 'XMPP_ERROR', 'XMPP_MESSAGE', 'XMPP_SUBSCRIBE', 'XMPP_PRESENCE', 'CHANNEL_PRESENCE', 'WARMUP'].map(
          (name) => `INBOUND_SERVICE_${name}`,
        ),
      ),
    ),
    'deployment.zip.source_url': takenFrom(
      /^https:\/\/storage\.googleapis\.com\/[^/]+\/.+$/,
      'https://storage.googleapis.com/BUCKET/OBJECT',
    ),
    service_account: accountEmail,
  },
  google_storage_bucket: {
    name: like(/^(?!goog)[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/, 'of 3 to 63 lower-case letters, digits, dots, hyphens and underscores'),
    public_access_prevention: oneOf('inherited', 'enforced'),
  },
  google_service_account: {
    account_id: like(/^[a-z]([a-z0-9-]{4,28}[a-z0-9])$/, 'of 6 to 30 lower-case letters, digits and hyphens, beginning with a letter'),
  },
  google_project_service: { service: like(/^[a-z0-9-]+\.googleapis\.com$/, 'the name of an API, as pubsub.googleapis.com') },
  google_project_iam_custom_role: {
    role_id: like(/^[\w.]{3,64}$/, 'of 3 to 64 letters, digits, dots and underscores'),
    stage: oneOf('ALPHA', 'BETA', 'GA', 'DEPRECATED', 'DISABLED', 'EAP'),
  },
  google_secret_manager_secret: { secret_id: secretName },
  google_secret_manager_secret_version: {
    secret: takenFrom(/^projects\/[^/]+\/secrets\/[^/]+$/, 'a full id, projects/PROJECT/secrets/NAME'),
  },
  google_monitoring_alert_policy: {
    combiner: oneOf('AND', 'OR', 'AND_WITH_MATCHING_RESOURCE'),
    severity: oneOf('CRITICAL', 'ERROR', 'WARNING'),
    'conditions.condition_threshold.comparison': oneOf(...['GT', 'GE', 'LT', 'LE', 'EQ', 'NE'].map((name) => `COMPARISON_${name}`)),
    'conditions.condition_threshold.duration': anySeconds,
    'conditions.condition_threshold.filter': like(/resource\.type\s*=/, 'a filter that names resource.type'),
    'conditions.condition_threshold.aggregations.alignment_period': secondsFrom(60, 25 * 3_600),
  },
  google_monitoring_dashboard: { dashboard_json: json },
  google_network_connectivity_service_connection_policy: { name: resourceName },
};

/** Every constraint that a configuration breaks, by path. A value that is not yet known breaks none. */
export function broken(type: string, values: Values, block: Block | undefined = googleSchema.resources.get(type)): readonly string[] {
  if (!block) return [];
  const isIam = type.endsWith('_iam_member');
  return visited(block, values).flatMap(({ path, value }) => {
    const constraint = path.startsWith('timeouts.')
      ? timeouts
      : isIam && path === 'member'
        ? iamMember
        : isIam && path === 'role'
          ? iamRole
          : constraints[type]?.[path];
    const reason = constraint?.(value);
    return reason ? [`${path} ${reason}`] : [];
  });
}

/** Groups of members of which one at most may be set. */
export const exclusive: Readonly<Record<string, readonly (readonly string[])[]>> = {
  google_pubsub_subscription: [['push_config', 'bigquery_config', 'cloud_storage_config']],
  google_cloud_scheduler_job: [['http_target', 'pubsub_target', 'app_engine_http_target']],
  google_app_engine_standard_app_version: [['automatic_scaling', 'basic_scaling', 'manual_scaling']],
  google_storage_bucket_object: [['content', 'source']],
};

/** Groups of which one member must be set. */
export const oneNeeded: Readonly<Record<string, readonly (readonly string[])[]>> = {
  google_cloud_scheduler_job: [['http_target', 'pubsub_target', 'app_engine_http_target']],
  google_storage_bucket_object: [['content', 'source']],
};
