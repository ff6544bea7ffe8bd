import type { Hooks } from '../provider/hooks.ts';
import { objectsOf, text, type Values } from '../provider/values.ts';
import { type Clients, duration } from './clients.ts';
import { isThere } from './pubsub.ts';

function queueOf(values: Values) {
  const [rates = {}] = objectsOf(values.rate_limits);
  const [retries = {}] = objectsOf(values.retry_config);
  const [routing] = objectsOf(values.app_engine_routing_override);
  const given = (name: string, value: unknown) => (value === null || value === undefined ? {} : { [name]: value });
  return {
    name: text(values.id),
    rateLimits: {
      ...given('maxDispatchesPerSecond', rates.max_dispatches_per_second),
      ...given('maxConcurrentDispatches', rates.max_concurrent_dispatches),
    },
    retryConfig: {
      ...given('maxAttempts', retries.max_attempts),
      ...given('maxRetryDuration', duration(retries.max_retry_duration)),
      ...given('minBackoff', duration(retries.min_backoff)),
      ...given('maxBackoff', duration(retries.max_backoff)),
      ...given('maxDoublings', retries.max_doublings),
    },
    ...(routing && { appEngineRoutingOverride: { service: text(routing.service), version: text(routing.version) } }),
  };
}

/** Queues in the emulator, as Terraform describes them. */
export const tasksHooks = ({ queues }: Pick<Clients, 'queues'>): Hooks => ({
  google_cloud_tasks_queue: {
    async create(values) {
      const queue = queueOf(values);
      await queues.createQueue({ parent: queue.name.slice(0, queue.name.indexOf('/queues/')), queue });
      return undefined;
    },
    isThere: ({ id }) => isThere(queues.getQueue({ name: text(id) })),
    async update(values) {
      const paths = ['rate_limits', 'retry_config', 'app_engine_routing_override'];
      await queues.updateQueue({ queue: queueOf(values), updateMask: { paths } });
      return undefined;
    },
    async delete({ id }) {
      await queues.deleteQueue({ name: text(id) });
    },
  },
});
