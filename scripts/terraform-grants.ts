/** A grant of `terraform/` in words. The role stands in the code alone; `member` must be the code's own expression. */
export type Grant = {
  /** Folder and address, as `modules/delay google_cloud_tasks_queue_iam_member.enqueuer`; `.` is the root. */
  readonly at: string;
  readonly member: string;
  readonly who: string;
  readonly which: string;
  readonly why: string;
};

const deployable = `\${google_service_account.deployable[each.key].member}`;
const builder = `\${google_service_account.builder.member}`;
const release = `\${var.release.member}`;

/** Who may do what, and why: the table of `terraform/README.md`. */
export const grants: readonly Grant[] = [
  {
    at: 'modules/functions google_cloud_run_v2_service_iam_member.invoker',
    member: `\${google_service_account.invoker.member}`,
    who: 'PREFIX-FUNCTION-invoker',
    which: 'of the function',
    why: 'its subscription, and the schedules of fifo, call as this account; nobody else may call',
  },
  {
    at: '. google_pubsub_topic_iam_member.publisher',
    member: `\${each.value.member}`,
    who: 'each deployable',
    which: 'that it publishes to: sink, final, targets, lane, and for the relay of fifo its source',
    why: 'to pass messages on',
  },
  {
    at: 'modules/subscription google_pubsub_topic_iam_member.dead_letter_publisher',
    member: `\${each.value}`,
    who: 'each deployable',
    which: 'of its dead letters; the release has those of delay',
    why: 'to set aside what can never be handled',
  },
  {
    at: 'modules/subscription google_pubsub_topic_iam_member.dead_letter_agent',
    member: `\${var.pubsub_agent}`,
    who: 'Pub/Sub itself',
    which: 'of the dead letters',
    why: 'to forward what failed too often; without it nothing is forwarded, and nothing says so',
  },
  {
    at: 'modules/subscription google_pubsub_subscription_iam_member.agent',
    member: `\${var.pubsub_agent}`,
    who: 'Pub/Sub itself',
    which: 'with dead letters',
    why: 'to ack what it forwarded',
  },
  {
    at: '. google_pubsub_subscription_iam_member.viewer',
    member: deployable,
    who: 'delay; dedup and fifo where `settings` hold SUBSCRIPTION',
    which: 'of its own',
    why: 'delay asks which topic it is of, lest a message goes round; the others check its times',
  },
  {
    at: '. google_project_iam_member.datastore_user',
    member: deployable,
    who: 'each deployable that keeps something in Firestore',
    which: 'on the condition that it is the one database',
    why: 'keys, cursors, ledger, outbox; Firestore has nothing finer',
  },
  {
    at: '. google_secret_manager_secret_iam_member.reader',
    member: `\${google_service_account.deployable["dedup"].member}`,
    who: 'dedup',
    which: 'of the cache: its URL with the password, its certificate',
    why: 'to reach the cache',
  },
  {
    at: 'modules/delay google_cloud_tasks_queue_iam_member.enqueuer',
    member: `\${each.value.member}`,
    who: 'delay, release',
    which: 'each of ours',
    why: 'to make tasks; the release makes the further ones of a long delay',
  },
  {
    at: 'modules/delay google_cloud_tasks_queue_iam_member.deleter',
    member: `\${var.enqueuer}`,
    who: 'delay',
    which: 'each of ours',
    why: 'to take away the task of a message that was replaced',
  },
  {
    at: 'modules/delay google_service_account_iam_member.enqueuer',
    member: `\${var.enqueuer}`,
    who: 'delay, only with `delay.mode` handler-less',
    which: 'PREFIX-release',
    why: 'its tasks publish as that account',
  },
  {
    at: 'modules/delay google_project_iam_member.app_engine_viewer',
    member: `\${each.value}`,
    who: 'delay, release',
    which: '',
    why: 'a task that calls App Engine is made only for who may see the application; App Engine has nothing finer',
  },
  {
    at: 'modules/delay google_storage_bucket_iam_member.release',
    member: release,
    who: 'release',
    which: 'of the archives',
    why: 'App Engine builds a version as the account that it runs as',
  },
  {
    at: 'modules/delay google_project_iam_member.release_image',
    member: release,
    who: 'release',
    which: '',
    why: 'the same build, into a repository that App Engine makes',
  },
  {
    at: 'modules/delay google_project_iam_member.release_log',
    member: release,
    who: 'release',
    which: '',
    why: 'the log of the same build; logs have nothing finer',
  },
  {
    at: 'modules/sources google_storage_bucket_iam_member.builder',
    member: builder,
    who: 'PREFIX-builder',
    which: 'of the archives',
    why: 'to build the functions',
  },
  {
    at: 'modules/sources google_artifact_registry_repository_iam_member.builder',
    member: builder,
    who: 'PREFIX-builder',
    which: 'of the images',
    why: 'to keep what it built',
  },
  {
    at: 'modules/sources google_project_iam_member.builder_log',
    member: builder,
    who: 'PREFIX-builder',
    which: '',
    why: 'the log of the build; logs have nothing finer',
  },
];
