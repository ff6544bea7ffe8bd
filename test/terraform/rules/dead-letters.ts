import { type Applied, blockOf, isSame, type Rule, secondsOf, textOf, type World } from './world.ts';

/** The account by which Pub/Sub itself forwards and acks. */
const agent = /^serviceAccount:service-\d+@gcp-sa-pubsub\.iam\.gserviceaccount\.com$/;
/** What stays in a dead-letter topic shorter is gone before somebody has looked. */
const leastKeptSeconds = 7 * 86_400;

const withDeadLetters = (world: World) =>
  world.all('google_pubsub_subscription').flatMap((subscription) => {
    const topic = textOf(blockOf(subscription.values, 'dead_letter_policy')?.dead_letter_topic);
    return topic === '' ? [] : [{ subscription, topic }];
  });

const grantsAgent = (grants: readonly Applied[], on: 'topic' | 'subscription', name: string, role: string): boolean =>
  grants.some(({ values }) => isSame(textOf(values[on]), name) && values.role === role && agent.test(textOf(values.member)));

/** The topics to which Pub/Sub forwards what nobody handled. */
const deadLetterTopics = (world: World): ReadonlySet<string> => new Set(withDeadLetters(world).map(({ topic }) => topic));

export const deadLetterRules: readonly Rule[] = [
  {
    name: 'Pub/Sub may publish to every dead-letter topic',
    findings: (world) =>
      withDeadLetters(world)
        .filter(({ topic }) => !grantsAgent(world.all('google_pubsub_topic_iam_member'), 'topic', topic, 'roles/pubsub.publisher'))
        .map(({ subscription, topic }) => `${subscription.address}: the Pub/Sub agent has no roles/pubsub.publisher on ${topic}`),
  },
  {
    name: 'Pub/Sub may ack on every subscription with dead letters',
    findings: (world) =>
      withDeadLetters(world)
        .filter(({ subscription: { values } }) => {
          const grants = world.all('google_pubsub_subscription_iam_member');
          return !grantsAgent(grants, 'subscription', textOf(values.id), 'roles/pubsub.subscriber');
        })
        .map(({ subscription }) => `${subscription.address}: the Pub/Sub agent has no roles/pubsub.subscriber on it`),
  },
  {
    name: 'every dead-letter topic has a subscription that keeps what comes',
    findings: (world) =>
      [...deadLetterTopics(world)].flatMap((topic) => {
        const on = world.all('google_pubsub_subscription').filter(({ values }) => isSame(textOf(values.topic), topic));
        if (on.length === 0) return [`${topic} has no subscription: what is forwarded there is lost`];
        const keeps = on.some(({ values }) => (secondsOf(values.message_retention_duration) ?? 0) >= leastKeptSeconds);
        return keeps ? [] : [`${topic}: no subscription keeps messages for ${leastKeptSeconds}s or more`];
      }),
  },
  {
    name: 'no subscription expires',
    findings: (world) =>
      world
        .all('google_pubsub_subscription')
        .filter(({ values }) => blockOf(values, 'expiration_policy')?.ttl !== '')
        .map(({ address }) => `${address}: without expiration_policy { ttl = "" } it is deleted after 31 idle days`),
  },
];
